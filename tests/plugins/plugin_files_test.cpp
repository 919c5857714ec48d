#include "plugins/plugin_files.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "support/folder.h"

namespace placewright {
namespace {

constexpr const char* kVariable = "PLACEWRIGHT_NO_SUCH_PLUGIN";

TEST(PluginFiles, TheVariableDecidesEvenIfItsFileIsNotThere) {
  const testing::Folder folder;
  const std::string chosen = folder.file("chosen.so");
  ASSERT_EQ(setenv(kVariable, chosen.c_str(), 1), 0);
  EXPECT_TRUE(plugin_files(kVariable, "/proc/self/exe").empty());
  std::ofstream(chosen) << "x";
  EXPECT_EQ(plugin_files(kVariable, "/proc/self/exe"),
            (std::vector<std::filesystem::path>{chosen}));
  unsetenv(kVariable);
}

TEST(PluginFiles, AreLookedForBesideTheProgram) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(plugin_files(kVariable, program.filename()),
            (std::vector<std::filesystem::path>{program}));
  EXPECT_TRUE(plugin_files(kVariable, "libno_such_library.so").empty());
}

TEST(PluginFiles, AnAbsolutePathStandsForItself) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(plugin_files(kVariable, program), (std::vector<std::filesystem::path>{program}));
}

}  // namespace
}  // namespace placewright
