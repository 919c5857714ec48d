// What the sanitizers look for, and what they leave alone. The names are the sanitizers' own: they call these functions
// at start-up, and the environment (ASAN_OPTIONS, …) still has the last word.

extern "C" {

const char* __asan_default_options() { return "detect_leaks=1:detect_stack_use_after_return=1"; }

// use_tls=0: the leak check of g++ 12 reads the thread-local storage of threads that CP-SAT has ended, and crashes.
const char* __lsan_default_options() { return "print_suppressions=0:use_tls=0"; }

// Leaks inside third-party libraries, which are not ours to mend.
const char* __lsan_default_suppressions() {
  return "leak:libortools.so\n"
         "leak:libprotobuf.so\n"
         "leak:libabsl_\n";
}

const char* __ubsan_default_options() { return "print_stacktrace=1"; }

}  // extern "C"
