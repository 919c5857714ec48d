// Arrays in .npy and .npz files and images, and as inputs of models.

#include "formats/array_files.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include "formats/image.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "support/locations.h"

namespace placewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Number>
Array array_of(std::vector<std::size_t> shape, const std::vector<Number>& values) {
  return Array::of<Number>(std::move(shape), values);
}

TEST(Npy, ReadsWhatItWrites) {
  for (const Array& array :
       {array_of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), array_of<std::int64_t>({2}, {-1, 7}),
        array_of<double>({}, {0.5}), array_of<std::uint8_t>({0, 4}, {}),
        Array{.element = "boolean", .shape = {1}, .bytes = {std::byte{1}}}}) {
    const std::string bytes = npy_bytes(array);
    const Array read = parse_npy(bytes, "test.npy");
    EXPECT_EQ(read.element, array.element);
    EXPECT_EQ(read.shape, array.shape);
    EXPECT_EQ(read.bytes, array.bytes);
    EXPECT_EQ((bytes.size() - array.bytes.size()) % 64, 0U);
  }
  EXPECT_THROW((void)npy_bytes({.element = "bf16", .shape = {0}, .bytes = {}}),
               std::invalid_argument);
}

template <class Parse>
std::string fault_of(const std::string& bytes, Parse parse) {
  try {
    (void)parse(bytes, "test");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string fault_of(const std::string& bytes) {
  return fault_of(bytes, parse_npy);
}

TEST(Npy, SaysWhatIsWrong) {
  const std::string good = npy_bytes(array_of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string bytes = good;
    return bytes.replace(bytes.find(what), what.size(), instead);
  };
  EXPECT_THAT(fault_of("text"), HasSubstr("is not a .npy file"));
  EXPECT_THAT(fault_of(with("<f4", ">f4")), HasSubstr("the type >f4"));
  EXPECT_THAT(fault_of(with("False", "True ")), HasSubstr("stored by columns"));
  EXPECT_THAT(fault_of(with("(2, 3)", "(3, 3)")), HasSubstr("24 bytes of values"));
  EXPECT_THAT(fault_of(with("(2, 3)", "(x, 3)")), HasSubstr("shape cannot be read"));
  EXPECT_THAT(fault_of(with("shape", "shave")), HasSubstr("no 'shape'"));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(fault_of(good.substr(0, size)), "") << size;
  }
}

TEST(Npz, RefusesWhatIsNoArchive) {
  EXPECT_THROW((void)parse_npz("no archive", "test.npz"), InputError);
  EXPECT_THROW((void)parse_npz(std::string("PK\5\6", 4) + std::string(18, '\xff'), "test.npz"),
               InputError);
}

// A member of an archive as a ZIP file describes it: first where it lies, then in the directory.
struct Packed {
  std::string name;
  std::size_t method = 8;  // deflated
  std::size_t checksum = 0;
  std::size_t size = 0;  // unpacked
  std::string bytes;
};

std::string little_endian(std::size_t number, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xffU);
  return text;
}

std::string description_of(const Packed& member) {
  return little_endian(20, 2) + little_endian(0, 2) + little_endian(member.method, 2) +
         little_endian(0, 4) + little_endian(member.checksum, 4) +
         little_endian(member.bytes.size(), 4) + little_endian(member.size, 4) +
         little_endian(member.name.size(), 2) + little_endian(0, 2);
}

// `shared`: the directory says of all members that they lie where the first one does.
std::string archive_of(const std::vector<Packed>& members, bool shared = false) {
  std::string archive;
  std::string directory;
  for (const Packed& member : members) {
    directory += std::string("PK\1\2", 4) + little_endian(20, 2) + description_of(member) +
                 std::string(10, '\0') + little_endian(shared ? 0 : archive.size(), 4) +
                 member.name;
    archive += std::string("PK\3\4", 4) + description_of(member) + member.name + member.bytes;
  }
  const std::size_t begin = archive.size();
  return archive + directory + std::string("PK\5\6", 4) + little_endian(0, 4) +
         little_endian(members.size(), 2) + little_endian(members.size(), 2) +
         little_endian(directory.size(), 4) + little_endian(begin, 4) + little_endian(0, 2);
}

Packed packed(const std::string& name, const std::string& bytes, int level) {
  Packed member{.name = name + ".npy", .size = bytes.size(), .bytes = std::string(1 << 17, '\0')};
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(member.bytes.data());
  stream.avail_out = static_cast<uInt>(member.bytes.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  member.bytes.resize(stream.total_out);
  deflateEnd(&stream);
  member.checksum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return member;
}

std::string fault_of_archive(const std::string& bytes) {
  return fault_of(bytes, parse_npz);
}

TEST(Npz, ReadsWhatNumPyHasPacked) {
  const auto arrays =
      parse_npz(read_whole(testing::source_path("tests/data/cases/zeros1000.npz")), "zeros");
  ASSERT_EQ(arrays.size(), 1U);
  EXPECT_EQ(arrays.at("q").count(), 1000U);
}

// Blocks of all kinds, and streams that end at any bit of their last byte.
TEST(Npz, ReadsEveryLengthAndLevel) {
  for (std::size_t trial = 0; trial < 160; ++trial) {
    std::vector<float> values(trial * trial % 3001);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t value = i % (1 + trial % 7) * (i / (1 + trial));
      values[i] = static_cast<float>(value);
    }
    const Array array = array_of<float>({values.size()}, values);
    const int level = static_cast<int>(trial % 10);
    const auto read = parse_npz(
        archive_of({packed("a", npy_bytes(array), level), packed("b", npy_bytes(array), 9)}), "");
    EXPECT_EQ(read.at("a").bytes, array.bytes) << trial;
    EXPECT_EQ(read.at("b").bytes, array.bytes) << trial;
  }
}

TEST(Npz, RefusesWhatIsDamaged) {
  const Packed good = packed("a", npy_bytes(array_of<float>({3}, {1, 2, 3})), 6);
  ASSERT_EQ(fault_of_archive(archive_of({good})), "");
  const auto refused = [&](const auto& change) {
    Packed member = good;
    change(member);
    EXPECT_THAT(fault_of_archive(archive_of({member})), HasSubstr("the archive is damaged"));
  };
  refused([](Packed& member) { member.checksum ^= 1U; });
  refused([](Packed& member) { ++member.size; });
  refused([](Packed& member) { --member.size; });
  refused([](Packed& member) { member.bytes.pop_back(); });
  refused([](Packed& member) { member.bytes += "more"; });
  refused([](Packed& member) { member.method = 12; });
  refused([](Packed& member) { member.method = 0; });
  refused([](Packed& member) { member.bytes[0] = '\xff'; });
}

// A file of some kilobytes cannot make the program ask for gigabytes.
TEST(Npz, RefusesAMemberThatClaimsMoreThanItsBytesCanHold) {
  const auto most_memory = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // in KiB
  };
  const long before = most_memory();
  EXPECT_THAT(fault_of_archive(archive_of({{.name = "a", .size = 0x3f000000, .bytes = "data"}})),
              HasSubstr("the archive is damaged"));
  EXPECT_LT(most_memory() - before, 1L << 19U);
}

TEST(Npz, RefusesMembersThatOverlapOrAreTooLargeTogether) {
  const Packed member = packed("a", npy_bytes(array_of<float>({3}, {1, 2, 3})), 6);
  EXPECT_THAT(fault_of_archive(archive_of({member, member}, true)),
              HasSubstr("two members overlap"));
  Packed large = member;
  large.size = kLargestFile / 2 + 1;
  EXPECT_THAT(fault_of_archive(archive_of({large, large})),
              HasSubstr("unpacks to 1073741826 bytes, which is more than 1073741824"));
}

TEST(AsInput, ConvertsWhatFits) {
  const Array whole = array_of<std::int64_t>({3}, {0, 1, 255});
  EXPECT_THAT(as_input(whole, "f32", {3}).values<float>(), ElementsAre(0, 1, 255));
  EXPECT_THAT(as_input(whole, "u8", {1, 3}).values<std::uint8_t>(), ElementsAre(0, 1, 255));
  EXPECT_THROW((void)as_input(whole, "i8", {3}), std::invalid_argument);
  EXPECT_THROW((void)as_input(whole, "boolean", {3}), std::invalid_argument);
  EXPECT_THROW((void)as_input(whole, "f32", {2}), std::invalid_argument);
  const Array halves = array_of<double>({2}, {0.5, 2});
  EXPECT_THROW((void)as_input(halves, "i32", {2}), std::invalid_argument);
  EXPECT_THROW((void)as_input(array_of<float>({1}, {0x1p63F}), "i64", {1}), std::invalid_argument);
}

TEST(AsInput, RoundsToHalfPrecisionAndBack) {
  const std::vector<float> exact = {0, 1, -2, 0.5, 65504, 0x1p-24F, -0x1.8p-14F};
  for (const char* element : {"f16", "bf16"}) {
    const Array there = as_input(array_of<float>({7}, exact), element, {7});
    const std::vector<float> back = as_input(there, "f32", {7}).values<float>();
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_NEAR(back[i], exact[i], std::abs(exact[i]) * (*element == 'f' ? 0 : 0x1p-8)) << i;
    }
  }
  const float infinity = std::numeric_limits<float>::infinity();
  const Array large = as_input(array_of<float>({2}, {infinity, 1 + 0x1p-11F}), "f16", {2});
  EXPECT_THAT(as_input(large, "f32", {2}).values<float>(), ElementsAre(infinity, 1));
}

TEST(AsInput, RefusesNumbersThatAreTooLargeForRealElements) {
  EXPECT_THROW((void)as_input(array_of<float>({1}, {1e6F}), "f16", {1}), std::invalid_argument);
  EXPECT_THROW((void)as_input(array_of<double>({1}, {1e300}), "f16", {1}), std::invalid_argument);
  EXPECT_THROW((void)as_input(array_of<double>({1}, {-1e39}), "f32", {1}), std::invalid_argument);
  EXPECT_THROW((void)as_input(array_of<float>({1}, {0x1.ffffp127F}), "bf16", {1}),
               std::invalid_argument);
  EXPECT_THROW((void)as_input(array_of<std::int64_t>({1}, {70000}), "f16", {1}),
               std::invalid_argument);
}

TEST(AsInput, RefusesBytesThatAreNotThoseOfTheShape) {
  const auto fault = [](const Array& array, const std::string& element) -> std::string {
    try {
      (void)as_input(array, element, array.shape);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  for (const char* element : {"f32", "bf16", "u8", "boolean"}) {
    for (const std::size_t bytes : {0U, 1U, 100U}) {
      const Array array{
          .element = element, .shape = {1, 2, 3}, .bytes = std::vector(bytes, std::byte{})};
      EXPECT_THAT(fault(array, element), HasSubstr("bytes of values")) << element << bytes;
      EXPECT_THAT(fault(array, "f64"), HasSubstr("bytes of values")) << element << bytes;
    }
  }
  const std::size_t huge = std::size_t{1} << 62U;
  EXPECT_NE(fault({.element = "f32", .shape = {huge, 4}, .bytes = {}}, "f32"), "");
  EXPECT_NE(fault({.element = "f32", .shape = {0, 4}, .bytes = {std::byte{}}}, "f32"), "");
  EXPECT_EQ(fault({.element = "f32", .shape = {0, 4}, .bytes = {}}, "f64"), "");
  EXPECT_NE(fault({.element = "complex", .shape = {1}, .bytes = {std::byte{}}}, "f32"), "");
}

// Two pixels, red and blue.
constexpr std::string_view kPixels("P6\n2 1\n255\n\xff\0\0\0\0\xff", 17);

TEST(Image, IsResizedOrderedAndScaledForTheInput) {
  const Array image = parse_image(kPixels, "test.ppm");
  EXPECT_THAT(image.shape, ElementsAre(1, 2, 3));
  EXPECT_THAT(as_input(image, "f32", {1, 3, 1, 2}).values<float>(), ElementsAre(1, 0, 0, 0, 0, 1));
  EXPECT_THAT(as_input(image, "u8", {1, 1, 2, 3}).values<std::uint8_t>(),
              ElementsAre(255, 0, 0, 0, 0, 255));
  EXPECT_EQ(as_input(image, "f32", {1, 3, 8, 8}).count(), 192U);
  EXPECT_THROW((void)as_input(image, "f32", {1, 4, 8, 8}), std::invalid_argument);
  EXPECT_THROW((void)parse_image("no image", "test.png"), InputError);
  const Array empty{.element = "u8", .shape = {0, 2, 3}, .bytes = {}};
  EXPECT_THROW((void)as_input(empty, "f32", {1, 3, 8, 8}), std::invalid_argument);
}

}  // namespace
}  // namespace placewright
