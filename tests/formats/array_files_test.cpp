// Arrays in .npy and .npz files and images, and as inputs of models.

#include "formats/array_files.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "formats/image.h"
#include "formats/input_error.h"

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

std::string fault_of(const std::string& bytes) {
  try {
    (void)parse_npy(bytes, "test.npy");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
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

// A file of some hundred bytes cannot make the program ask for gigabytes.
TEST(Npz, RefusesAMemberThatClaimsMoreThanItsBytesCanHold) {
  std::string entry = std::string("PK\1\2", 4) + std::string(42, '\0');
  entry[10] = 8;                                       // deflated
  entry[20] = 4;                                       // bytes, packed
  entry.replace(24, 4, std::string("\0\0\0\x7f", 4));  // unpacked
  std::string end = std::string("PK\5\6", 4) + std::string(18, '\0');
  end[10] = 1;   // entry
  end[16] = 34;  // where it begins
  const std::string archive =
      std::string("PK\3\4", 4) + std::string(26, '\0') + "data" + entry + end;
  const auto most_memory = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // in KiB
  };
  const long before = most_memory();
  EXPECT_THROW((void)parse_npz(archive, "test.npz"), InputError);
  EXPECT_LT(most_memory() - before, 1L << 20U);
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
