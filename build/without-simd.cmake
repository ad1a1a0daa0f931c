# CMake reads this before it builds the WebAssembly interpreter of the QuickJS engine (CMAKE_TOOLCHAIN_FILE). That build switches SIMD on
# without asking, and for SIMD fetches the sources of another project, which a machine that sees only package registries cannot.
# So the switch is put back each time it is touched: WebAssembly works, SIMD in it does not.
macro(rcrt_without_simd name access value)
  if("${access}" STREQUAL "MODIFIED_ACCESS" AND NOT "${value}" STREQUAL "0")
    set(${name} 0)
  endif()
endmacro()
variable_watch(WAMR_BUILD_SIMD rcrt_without_simd)
