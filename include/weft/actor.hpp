#pragma once
/// Actors of an application: plain classes whose member functions other threads, and other
/// processes of the system, can call.
///
///   struct Counter {
///     void add(int n) { total_ += n; }
///     int total() const { return total_; }
///     using endpoints = weft::Endpoints<&Counter::add, &Counter::total>;
///     int total_ = 0;
///   };
///   static weft::ActorType<Counter> counter{"acme.counter"};
///
///   int main(int argc, char** argv) {
///     weft::worker_main(argc, argv);
///     weft::ActorSystem system;
///     const auto counters = system.spawn(counter, {.count = 4, .place = weft::processes(2)});
///     counters.tell<&Counter::add>(5);
///     for (int total : counters.call<&Counter::total>().get()) fmt::print("{}\n", total);
///   }

#include <weft/actor/actor_context.hpp>
#include <weft/actor/actor_mesh.hpp>
#include <weft/actor/actor_options.hpp>
#include <weft/actor/actor_ref.hpp>
#include <weft/actor/actor_system.hpp>
#include <weft/actor/actor_type.hpp>
#include <weft/actor/attach.hpp>
#include <weft/actor/call.hpp>
#include <weft/actor/endpoints.hpp>
#include <weft/actor/experience.hpp>
#include <weft/actor/experience_writer.hpp>
#include <weft/actor/future.hpp>
#include <weft/actor/loan.hpp>
#include <weft/actor/outcome.hpp>
#include <weft/actor/parameters.hpp>
#include <weft/actor/pipe.hpp>
#include <weft/actor/publisher.hpp>
#include <weft/actor/reply.hpp>
#include <weft/message.hpp>
#include <weft/train/loop.hpp>
