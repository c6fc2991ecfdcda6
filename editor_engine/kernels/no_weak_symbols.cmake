# Fails the build when an ISA-specific object defines a weak symbol (see CMakeLists.txt).
string(REPLACE "|" ";" OBJECTS "${OBJECTS}")
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND "${NM}" "${object}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "[^\n]* [WVu] [^\n]*" weak "${symbols}")
  if(weak)
    message(FATAL_ERROR "${object} shares inline code with the baseline: ${weak}")
  endif()
endforeach()
