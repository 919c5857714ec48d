// What the sanitizers look for, and what they leave alone. The names are the sanitizers' own: they
// call these functions at start-up, and the environment (ASAN_OPTIONS, …) still has the last word.

#include <cstring>

#include <link.h>

namespace {

int is_openvino(dl_phdr_info* library, std::size_t, void*) {
  return library->dlpi_name != nullptr && std::strstr(library->dlpi_name, "libopenvino") != nullptr;
}

}  // namespace

extern "C" {

const char* __asan_default_options() {
  return "detect_leaks=1:detect_stack_use_after_return=1";
}

// use_tls=0: the leak check of g++ 12 reads the thread-local storage of threads that CP-SAT has
// ended, and crashes.
const char* __lsan_default_options() {
  return "print_suppressions=0:use_tls=0";
}

// Leaks inside third-party libraries and the loader, which are not ours to mend.
const char* __lsan_default_suppressions() {
  return "leak:libortools.so\n"
         "leak:libprotobuf.so\n"
         "leak:libabsl_\n"
         "leak:ld-linux\n";
}

// OpenVINO and its TBB keep what they have in the storage of their threads, which the check cannot
// see (use_tls=0): a process that has loaded them is checked for everything but leaks.
int __lsan_is_turned_off() {
  return dl_iterate_phdr(is_openvino, nullptr);
}

const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

// The solvers are not built for ThreadSanitizer, which cannot see how they order what they do.
const char* __tsan_default_options() {
  return "halt_on_error=1:ignore_noninstrumented_modules=1";
}

}  // extern "C"
