// Switches for mutants, one of which PLACEWRIGHT_MUTANT chooses. scripts/mutants writes calls of
// these into a copy of the sources; nothing of ours includes this file.

#pragma once
#pragma GCC system_header
namespace mutation {

extern const int chosen;
extern unsigned char reached[];

inline bool on(int mutant) {
  reached[mutant] = 1;
  return chosen == mutant;
}

// What the name says, and something else for the chosen mutant.
template <class A, class B>
auto plus(int mutant, const A& a, const B& b) {
  return on(mutant) ? a - b : a + b;
}
template <class A, class B>
auto minus(int mutant, const A& a, const B& b) {
  if constexpr (requires { a + b; }) {
    return on(mutant) ? a + b : a - b;
  } else {
    return a - b;  // of iterators there is no sum
  }
}
template <class A, class B>
auto times(int mutant, const A& a, const B& b) {
  return on(mutant) ? a / b : a * b;
}
template <class A, class B>
auto over(int mutant, const A& a, const B& b) {
  return on(mutant) ? a * b : a / b;
}
template <class A, class B>
bool less(int mutant, const A& a, const B& b) {
  return on(mutant) ? a <= b : a < b;
}
template <class A, class B>
bool at_most(int mutant, const A& a, const B& b) {
  return on(mutant) ? a < b : a <= b;
}
template <class A, class B>
bool more(int mutant, const A& a, const B& b) {
  return on(mutant) ? a >= b : a > b;
}
template <class A, class B>
bool at_least(int mutant, const A& a, const B& b) {
  return on(mutant) ? a > b : a >= b;
}
template <class A, class B>
bool equal(int mutant, const A& a, const B& b) {
  return on(mutant) ? a != b : a == b;
}
template <class A, class B>
bool differs(int mutant, const A& a, const B& b) {
  return on(mutant) ? a == b : a != b;
}
template <class A, class B>
A& add(int mutant, A& a, const B& b) {
  return on(mutant) ? a -= b : a += b;
}
template <class A, class B>
A& subtract(int mutant, A& a, const B& b) {
  return on(mutant) ? a += b : a -= b;
}
template <class A, class B>
A& multiply(int mutant, A& a, const B& b) {
  return on(mutant) ? a /= b : a *= b;
}
template <class A, class B>
A& divide(int mutant, A& a, const B& b) {
  return on(mutant) ? a *= b : a /= b;
}

}  // namespace mutation
