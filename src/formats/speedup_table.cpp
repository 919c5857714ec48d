#include "formats/speedup_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "formats/input_error.h"
#include "formats/text_file.h"
#include "formats/utf8.h"

namespace placewright {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

class TableReader {
 public:
  explicit TableReader(std::string origin) : origin_(std::move(origin)) {}

  SpeedUpTable read(std::string_view text) {
    SpeedUpTable table;
    table.name = std::filesystem::path(origin_).stem().string();
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view line = trimmed(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++line_;
      if (line.empty()) continue;
      if (titles_.empty()) {
        for (const std::string_view title : cells_of(line)) titles_.emplace_back(title);
        operator_ = column("operator", true);
        speed_up_ = column("speedup", true);
        continue;
      }
      table.rows.push_back(row(cells_of(line)));
    }
    if (titles_.empty()) fail("the table is empty");
    return table;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(origin_, fmt::format("line {}", std::max<std::size_t>(line_, 1)), message);
  }

  [[nodiscard]] std::size_t column(const std::string& title, bool needed) const {
    const auto found = std::find(titles_.begin(), titles_.end(), title);
    if (found == titles_.end() && needed) fail(fmt::format("there is no column '{}'", title));
    return static_cast<std::size_t>(found - titles_.begin());
  }

  [[nodiscard]] double number(std::string_view cell) const {
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    const bool whole = error == std::errc{} && end == cell.data() + cell.size();
    if (!whole || !std::isfinite(value) || value < 0) {
      fail(fmt::format("expected a number that is not negative, found '{}'", cell));
    }
    return value;
  }

  [[nodiscard]] SpeedUpRow row(const std::vector<std::string_view>& cells) const {
    if (cells.size() != titles_.size()) {
      fail(fmt::format("{} cells under {} titles", cells.size(), titles_.size()));
    }
    SpeedUpRow made;
    made.type = cells[operator_];
    made.speed_up = number(cells[speed_up_]);
    const auto optional = [&](const char* title) -> std::optional<double> {
      const std::size_t found = column(title, false);
      if (found == titles_.size()) return std::nullopt;
      return number(cells[found]);
    };
    made.cpu_total = optional("cpu_tol_time");
    made.cpu_mean = optional("cpu_avg_time");
    made.gpu_mean = optional("gpu_avg_time");
    return made;
  }

  std::string origin_;
  std::size_t line_ = 0;
  std::vector<std::string> titles_;
  std::size_t operator_ = 0;
  std::size_t speed_up_ = 0;
};

}  // namespace

SpeedUpTable parse_speed_up_table(std::string_view text, const std::string& origin) {
  return TableReader(origin).read(utf8_content(text, origin));
}

SpeedUpTable read_speed_up_table(const std::string& path) {
  return parse_speed_up_table(read_whole(path), path);
}

}  // namespace placewright
