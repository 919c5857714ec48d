// Two threads that change a number without agreeing on an order: ThreadSanitizer must name it,
// whichever comes first.

#include <thread>

int main() {
  int shared = 0;
  const auto add = [&] { ++shared; };
  std::thread first(add);
  std::thread second(add);
  first.join();
  second.join();
  return shared == 0 ? 1 : 0;
}
