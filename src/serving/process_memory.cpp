#include "serving/process_memory.h"

#include <fstream>

#include <malloc.h>
#include <unistd.h>

namespace placewright {

double resident_bytes() {
  std::ifstream pages("/proc/self/statm");
  double all = 0;
  double resident = 0;
  pages >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void give_back_memory() {
  malloc_trim(0);
}

}  // namespace placewright
