#include "formats/text_file.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/input_error.h"
#include "support/folder.h"

namespace placewright {
namespace {

using testing::Folder;

template <class Error, class Action>
std::string complaint(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(TextFile, KeepsEveryByte) {
  const Folder folder;
  std::string bytes;
  for (unsigned i = 0; i < 3'000'000; ++i) bytes += static_cast<char>(i * 7919 >> 3);
  write_whole(folder.file("bytes"), bytes);
  EXPECT_EQ(read_whole(folder.file("bytes")), bytes);
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(TextFile, RefusesWhatIsNoReadableFile) {
  const Folder folder;
  const std::string missing = folder.file("missing.json");
  EXPECT_EQ(complaint<InputError>([&] { (void)read_whole(missing); }),
            missing + ": cannot be read: No such file or directory");
  const std::string directory = folder.file("");
  EXPECT_EQ(complaint<InputError>([&] { (void)read_whole(directory); }),
            directory + ": is a directory, expected a file");
  const std::string large = folder.file("large.json");
  write_whole(large, std::string(1001, ' '));
  EXPECT_EQ(complaint<InputError>([&] { (void)read_whole(large, 1000); }),
            large + ": is larger than 1000 bytes, the most that is read");
  EXPECT_EQ(read_whole(large, 1001).size(), 1001U);
}

TEST(TextFile, RefusesAHugeFileWithoutReadingIt) {
  const Folder folder;
  const std::string huge = folder.file("huge.json");
  write_whole(huge, "{}");
  ASSERT_EQ(truncate(huge.c_str(), off_t{1} << 40), 0);  // sparse
  EXPECT_EQ(complaint<InputError>([&] { (void)read_whole(huge); }),
            huge + ": is larger than 1073741824 bytes, the most that is read");
}

TEST(TextFile, AFailedWriteLeavesNothingBehind) {
  const Folder folder;
  const std::string nowhere = folder.file("no/such/folder/plan.json");
  EXPECT_EQ(complaint<OutputError>([&] { write_whole(nowhere, "x"); }),
            nowhere + ": cannot be written: No such file or directory");
  const std::string directory = folder.file("directory");
  std::filesystem::create_directory(directory);
  EXPECT_EQ(complaint<OutputError>([&] { write_whole(directory, "x"); }),
            directory + ": is a directory, expected a file to write");
  const std::string under_a_file = folder.file("file");
  write_whole(under_a_file, "old");
  EXPECT_EQ(complaint<OutputError>([&] { write_whole(under_a_file + "/x", "x"); }),
            under_a_file + "/x: cannot be written: Not a directory");
  EXPECT_EQ(read_whole(under_a_file), "old");
  EXPECT_EQ(folder.file_count(), 2U);
}

TEST(TextFile, AFullDeviceIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_EQ(complaint<OutputError>([] { write_whole("/dev/full", "x"); }),
            "/dev/full: cannot be written: No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(TextFile, ReplacesContentButKeepsLinksAndPermissions) {
  const Folder folder;
  const std::string target = folder.file("target.json");
  const std::string link = folder.file("link.json");
  write_whole(target, "old");
  ASSERT_EQ(chmod(target.c_str(), 0640), 0);
  std::filesystem::create_symlink("target.json", link);
  write_whole(link, "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_whole(target), "new");
  struct stat about {};
  ASSERT_EQ(stat(target.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0640U);
  EXPECT_EQ(folder.file_count(), 2U);
}

TEST(TextFile, DigestsAreSha256) {
  EXPECT_EQ(digest_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest_of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(TextFile, DigestsOfFilesAreReadInPieces) {
  const testing::Folder folder;
  const std::string text = std::string((std::size_t{3} << 20) + 77, 'x') + "end";
  EXPECT_EQ(digest_of_file(folder.write("large", text)), digest_of(text));
  EXPECT_EQ(digest_of_file(folder.write("empty", "")), digest_of(""));
  EXPECT_THROW((void)digest_of_file(folder.file("none")), InputError);
}

TEST(TextFile, TheDigestOfAFolderIsOfNamesAndContents) {
  const testing::Folder folder;
  folder.write("b", "2");
  folder.write("a", "1");
  const std::string before = digest_of_file(folder.file(""));
  EXPECT_EQ(before, digest_of("a\n" + digest_of("1") + "\nb\n" + digest_of("2") + "\n"));
  folder.write("b", "3");
  EXPECT_NE(digest_of_file(folder.file("")), before);
}

}  // namespace
}  // namespace placewright
