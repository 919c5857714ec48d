// Strong ids and the tables they index.
//
// An OpId cannot be passed where a DeviceId is expected, and a Table<OpId, T> cannot be indexed by
// anything but an OpId. Both cost nothing at run time: an id is one 32-bit index.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace placewright {

template <class Noun>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}

  [[nodiscard]] constexpr std::size_t index() const { return index_; }
  [[nodiscard]] constexpr bool valid() const { return index_ != kNone; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t index_ = kNone;
};

using OpId = Id<struct OpNoun>;
using TensorId = Id<struct TensorNoun>;
using DeviceId = Id<struct DeviceNoun>;
using KindId = Id<struct KindNoun>;
using ModelId = Id<struct ModelNoun>;
using GroupId = Id<struct GroupNoun>;
using WeightId = Id<struct WeightNoun>;
using ResourceId = Id<struct ResourceNoun>;
using SpaceId = Id<struct SpaceNoun>;

// The ids 0 .. count-1, for range-based loops: `for (const OpId op : ids<OpId>(count))`.
template <class IdType>
class IdRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = IdType;
    using difference_type = std::ptrdiff_t;
    using pointer = const IdType*;
    using reference = IdType;

    constexpr Iterator() = default;
    constexpr explicit Iterator(std::size_t index) : index_(index) {}
    constexpr IdType operator*() const { return IdType{index_}; }
    constexpr Iterator& operator++() {
      ++index_;
      return *this;
    }
    constexpr Iterator operator++(int) { return Iterator{index_++}; }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    std::size_t index_ = 0;
  };

  constexpr explicit IdRange(std::size_t count) : count_(count) {}
  [[nodiscard]] constexpr Iterator begin() const { return Iterator{0}; }
  [[nodiscard]] constexpr Iterator end() const { return Iterator{count_}; }
  [[nodiscard]] constexpr std::size_t size() const { return count_; }

 private:
  std::size_t count_;
};

template <class IdType>
constexpr IdRange<IdType> ids(std::size_t count) {
  return IdRange<IdType>{count};
}

// One value for each id of a noun.
template <class IdType, class Value>
class Table {
 public:
  using value_type = Value;

  Table() = default;
  explicit Table(std::size_t count, Value value = {}) : values_(count, std::move(value)) {}
  explicit Table(std::vector<Value> values) : values_(std::move(values)) {}

  decltype(auto) operator[](IdType id) { return values_[id.index()]; }
  decltype(auto) operator[](IdType id) const { return values_[id.index()]; }

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] IdRange<IdType> keys() const { return ids<IdType>(values_.size()); }
  void assign(std::size_t count, const Value& value) { values_.assign(count, value); }
  void push_back(Value value) { values_.push_back(std::move(value)); }

  [[nodiscard]] auto begin() { return values_.begin(); }
  [[nodiscard]] auto end() { return values_.end(); }
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }
  [[nodiscard]] std::span<const Value> span() const { return values_; }

  friend bool operator==(const Table&, const Table&) = default;

 private:
  std::vector<Value> values_;
};

// Rows of unequal length, stored end to end ("compressed sparse rows").
template <class RowId, class Value>
class Rows {
 public:
  Rows() : begins_{0} {}

  [[nodiscard]] std::span<const Value> operator[](RowId row) const {
    return {values_.data() + begins_[row.index()], begins_[row.index() + 1] - begins_[row.index()]};
  }
  [[nodiscard]] std::size_t size() const { return begins_.size() - 1; }
  // Position of the row's first value among all values.
  [[nodiscard]] std::size_t offset(RowId row) const { return begins_[row.index()]; }
  [[nodiscard]] std::size_t value_count() const { return values_.size(); }

  void append(std::span<const Value> row) {
    values_.insert(values_.end(), row.begin(), row.end());
    begins_.push_back(values_.size());
  }

  // Groups (row, value) pairs by row; within a row the pairs keep their order.
  static Rows from_pairs(std::size_t row_count, std::span<const std::pair<RowId, Value>> pairs) {
    Rows rows;
    rows.begins_.assign(row_count + 1, 0);
    for (const auto& pair : pairs) ++rows.begins_[pair.first.index() + 1];
    for (std::size_t row = 0; row < row_count; ++row) rows.begins_[row + 1] += rows.begins_[row];
    rows.values_.resize(pairs.size());
    std::vector<std::size_t> next(rows.begins_.begin(), rows.begins_.end() - 1);
    for (const auto& [row, value] : pairs) rows.values_[next[row.index()]++] = value;
    return rows;
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<Value> values_;
};

}  // namespace placewright

template <class Noun>
struct std::hash<placewright::Id<Noun>> {
  std::size_t operator()(placewright::Id<Noun> id) const noexcept { return id.index(); }
};
