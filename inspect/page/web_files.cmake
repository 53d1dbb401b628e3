# `cmake -DFOLDER=... -DOUTPUT=... -P web_files.cmake` writes the files of the page as a C++ source.

set(scripts shapes mesh actors timeline curves page)

set(source "#include \"inspect/page/document.hpp\"\n\nnamespace weft {\n")
function(add_constant name)
  set(text "")
  foreach(file IN LISTS ARGN)
    file(READ "${FOLDER}/${file}" content)
    string(APPEND text "${content}")
  endforeach()
  string(APPEND source "\nconst std::string_view ${name} = R\"page(${text})page\";\n")
  set(source "${source}" PARENT_SCOPE)
endfunction()

list(TRANSFORM scripts APPEND .js)
add_constant(kPageHtml page.html)
add_constant(kPageCss page.css)
add_constant(kPageJs ${scripts})
file(WRITE "${OUTPUT}" "${source}\n}  // namespace weft\n")
