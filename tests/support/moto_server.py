"""Runs PyPI's moto as a server on loopback until the process that started it ends. The server
verifies signatures, and has a bucket "bucket". Prints "ready URL KEY SECRET"."""
import ctypes
import json
import logging
import os
import signal
import sys

ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"  # the four requests below
logging.getLogger("werkzeug").disabled = True

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
url = f"http://{host}:{port}"
common = dict(endpoint_url=url, region_name="us-east-1", aws_access_key_id="a",
              aws_secret_access_key="b")
iam = boto3.client("iam", **common)
iam.create_user(UserName="user")
everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
iam.put_user_policy(UserName="user", PolicyName="all", PolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [everything]}))
key = iam.create_access_key(UserName="user")["AccessKey"]
boto3.client("s3", **common).create_bucket(Bucket="bucket")
print("ready", url, key["AccessKeyId"], key["SecretAccessKey"], flush=True)
signal.pause()
