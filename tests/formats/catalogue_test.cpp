// Quantities with units, the catalogue of devices, and cluster files that use both.

#include "formats/catalogue.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/cluster_file.h"
#include "formats/input_error.h"
#include "formats/quantity.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;

TEST(Quantity, HasANumberAndAUnit) {
  EXPECT_DOUBLE_EQ(quantity_in("80GB")->value, 80e9);
  EXPECT_DOUBLE_EQ(quantity_in("1.5 KiB")->value, 1536);
  EXPECT_EQ(quantity_in("16GB/s")->dimension, Dimension::bytes_per_time);
  EXPECT_DOUBLE_EQ(*in_unit(*quantity_in("16GB/s"), TimeUnit::milliseconds), 16e6);
  EXPECT_DOUBLE_EQ(*in_unit(*quantity_in("5us"), TimeUnit::milliseconds), 0.005);
  EXPECT_DOUBLE_EQ(*in_unit(*quantity_in("5us"), TimeUnit::seconds), 5e-6);
  EXPECT_DOUBLE_EQ(*in_unit(*quantity_in("2GB"), TimeUnit::none), 2e9);
  EXPECT_FALSE(in_unit(*quantity_in("5us"), TimeUnit::none));
  for (const char* wrong : {"", "80", "GB", "-1GB", "80gb", "5us/s", "1e999GB", "nanGB", "8 0GB"}) {
    EXPECT_FALSE(quantity_in(wrong)) << wrong;
  }
}

TEST(Catalogue, EntriesAreCompleteAndTheirNamesUnique) {
  std::set<std::string> names;
  for (const CatalogueDevice& device : catalogue().devices) {
    EXPECT_TRUE(names.insert(device.name).second) << device.name;
    EXPECT_GT(device.memory, 1e9) << device.name;
    EXPECT_GT(device.rates.flops, 1e10) << device.name;
    EXPECT_GT(device.rates.bandwidth, 1e9) << device.name;
    EXPECT_GT(device.rates.launch, 0) << device.name;
    EXPECT_NE(device.source, "") << device.name;
  }
  for (const CatalogueLink& link : catalogue().links) {
    EXPECT_TRUE(names.insert(link.name).second) << link.name;
    EXPECT_GT(link.bandwidth, 1e9) << link.name;
  }
  EXPECT_EQ(catalogue().device("none"), nullptr);
}

TEST(Catalogue, AnOpTakesTheLongerOfFlopsAndBytesAndTheLaunch) {
  PeakRates peak{.flops = 100, .bandwidth = 10, .launch = 1};
  EXPECT_DOUBLE_EQ(peak.estimated_seconds({.flops = 100, .of_matrices = true}), 1 + 100 / 50.0);
  EXPECT_DOUBLE_EQ(peak.estimated_seconds({.flops = 100}), 1 + 100 / 20.0);
  EXPECT_DOUBLE_EQ(peak.estimated_seconds({.flops = 100, .bytes = 70, .of_matrices = true}),
                   1 + 10);
  const OpWork half{.flops = 100, .of_matrices = true, .in_half = true};
  EXPECT_DOUBLE_EQ(peak.estimated_seconds(half), 1 + 100 / 50.0) << "no units for it";
  peak.half_flops = 400;
  EXPECT_DOUBLE_EQ(peak.estimated_seconds(half), 1 + 100 / 200.0);
  EXPECT_DOUBLE_EQ(peak.estimated_seconds({.flops = 100, .in_half = true}), 1 + 100 / 20.0);
}

constexpr const char* kCluster = R"({"placewright": "cluster", "version": 1,
  "devices": [{"name": "a", "kind": "A100-80GB"}, {"name": "b", "kind": "A100-80GB"},
              {"name": "t", "kind": "T4", "memory": "8GB"}, {"name": "m", "kind": "mine"}],
  "rates": {"mine": {"flops": "2TFLOPS", "bandwidth": "100GB/s", "launch": "5us"}},
  "interconnect": {"kind": "links", "all": "PCIe-4.0-x16",
                   "links": [{"from": "a", "to": "b", "latency": "8us", "bandwidth": "300GB/s"}]}})";

TEST(ClusterFile, NamesEntriesOfTheCatalogue) {
  const ClusterFile file = parse_cluster(kCluster, "cluster.json");
  EXPECT_TRUE(file.warnings.empty());
  ASSERT_EQ(file.cluster.kinds.size(), 3U);
  EXPECT_DOUBLE_EQ(file.cluster.devices[0].memory, 80e9);
  EXPECT_DOUBLE_EQ(file.cluster.devices[2].memory, 8e9);
  EXPECT_EQ(file.cluster.devices[3].memory, kInfinity);
  EXPECT_DOUBLE_EQ(file.cluster.links[0].bandwidth, 31.5e6);  // bytes per millisecond
  EXPECT_DOUBLE_EQ(file.cluster.links.back().latency, 0.008);
  EXPECT_DOUBLE_EQ(rates_of(file, "A100-80GB")->flops, 19.5e12);
  EXPECT_DOUBLE_EQ(rates_of(file, "mine")->launch, 5e-6);
  EXPECT_FALSE(rates_of(file, "other"));
}

std::string fault_of(std::string text, const std::string& what, const std::string& instead,
                     TimeUnit unit = TimeUnit::milliseconds) {
  text.replace(text.find(what), what.size(), instead);
  try {
    (void)parse_cluster(text, "cluster.json", unit);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ClusterFile, FaultsOfQuantitiesNameThePlace) {
  EXPECT_THAT(fault_of(kCluster, "8GB", "8 apples"), HasSubstr("/devices/2/memory"));
  EXPECT_THAT(fault_of(kCluster, "PCIe-4.0-x16", "string"), HasSubstr("no link 'string'"));
  EXPECT_THAT(fault_of(kCluster, "8GB", "8GB", TimeUnit::none), HasSubstr("whose times have one"));
}

TEST(ClusterFile, QuantitiesAreOfTheDimensionOfTheirPlace) {
  const auto fault = [](const std::string& what, const std::string& instead) {
    return fault_of(kCluster, what, instead);
  };
  EXPECT_THAT(fault("8GB\"}", "5us\"}"),
              HasSubstr("/devices/2/memory: '5us' is a time, expected an amount of memory"));
  EXPECT_THAT(fault("8us", "8GB"), HasSubstr("/interconnect/links/0/latency"));
  EXPECT_THAT(fault("300GB/s", "300GB"), HasSubstr("/interconnect/links/0/bandwidth"));
  EXPECT_THAT(fault("2TFLOPS", "2TB/s"), HasSubstr("/rates/mine/flops"));
  EXPECT_THAT(fault("100GB/s", "100GB"), HasSubstr("/rates/mine/bandwidth"));
  EXPECT_THAT(fault("5us", "5B"), HasSubstr("/rates/mine/launch"));
  EXPECT_THAT(fault("\"name\": \"t\"", "\"name\": \"t\", \"send_overhead\": \"1GB\""),
              HasSubstr("/devices/2/send_overhead"));
}

TEST(ClusterFile, RatesAreMoreThanZeroAndOfKindsThatThereAre) {
  EXPECT_THAT(fault_of(kCluster, "\"2TFLOPS\"", "0"), HasSubstr("/rates/mine/flops"));
  EXPECT_THAT(fault_of(kCluster, "100GB/s", "0GB/s"), HasSubstr("/rates/mine/bandwidth"));
  EXPECT_EQ(fault_of(kCluster, "5us", "0us"), "");
  EXPECT_THAT(fault_of(kCluster, "\"mine\": {", "\"mein\": {"),
              HasSubstr("/rates/mein: no kind is called 'mein'"));
}

}  // namespace
}  // namespace placewright
