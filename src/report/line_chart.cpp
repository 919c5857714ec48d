#include "report/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "report/markup.h"

namespace placewright {
namespace {

constexpr double kWidth = 820;
constexpr double kHeight = 440;
constexpr double kLeft = 84;
constexpr double kRight = 150;
constexpr double kTop = 64;
constexpr double kBottom = 60;

// Dark enough for text on white, told apart without full colour vision (after Paul Tol).
constexpr std::array<const char*, 7> kColours = {"#0077bb", "#cc3311", "#009988", "#ee7733",
                                                 "#aa3377", "#555555", "#997700"};

// 1, 2 or 5 times a power of ten, so that about five steps make `span`.
double tick_step(double span) {
  const double rough = span / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

class ChartDrawing {
 public:
  ChartDrawing(const LineChart& chart, double top) : chart_(chart), top_(top) {
    for (const ChartLine& line : chart.lines) {
      for (const ChartPoint& point : line.points) {
        x_values_.push_back(point.x);
        if (std::isfinite(point.y)) y_most_ = std::max(y_most_, point.y);
      }
    }
    std::sort(x_values_.begin(), x_values_.end());
    x_values_.erase(std::unique(x_values_.begin(), x_values_.end()), x_values_.end());
    if (x_values_.empty()) x_values_.push_back(1);
    step_ = tick_step(y_most_ > 0 ? y_most_ : 1);
    y_top_ = step_ * std::max(1.0, std::ceil(y_most_ / step_ * 1.0001));
  }

  std::string run() {
    draw_titles();
    draw_axes();
    std::vector<Label> labels;
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) {
      draw_line(chart_.lines[i], kColours[i % kColours.size()], labels);
    }
    draw_labels(labels);
    return std::move(text_);
  }

 private:
  struct Label {
    double y;
    std::string text;
    const char* colour;
  };

  [[nodiscard]] double place(double x) const { return chart_.logarithmic ? std::log10(x) : x; }
  [[nodiscard]] double across(double x) const {
    const double first = place(x_values_.front());
    const double last = place(x_values_.back());
    const double share = last > first ? (place(x) - first) / (last - first) : 0.5;
    return kLeft + 16 + share * (kWidth - kLeft - kRight - 32);
  }
  [[nodiscard]] double down(double y) const {
    return top_ + kHeight - kBottom - y / y_top_ * (kHeight - kTop - kBottom);
  }

  void add_text(double x, double y, const char* attributes, const std::string& text) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes,
                         markup_text(text));
  }

  void draw_titles() {
    add_text(kLeft, top_ + 26, "font-size=\"17\" font-weight=\"bold\"", chart_.title);
    add_text(kLeft, top_ + 46, "fill=\"#555\"", chart_.subtitle);
    add_text((kLeft + kWidth - kRight) / 2, top_ + kHeight - 14, "text-anchor=\"middle\"",
             chart_.x_title);
    const double middle = top_ + (kTop + kHeight - kBottom) / 2;
    text_ += fmt::format(
        "<text transform=\"translate(20 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        middle, markup_text(chart_.y_title));
  }

  void draw_axes() {
    const int steps = static_cast<int>(std::lround(y_top_ / step_));
    for (int i = 0; i <= steps; ++i) {
      const double y = down(i * step_);
      text_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\"/>\n", kLeft, y,
                           kWidth - kRight, i == 0 ? "#333" : "#ddd");
      add_text(kLeft - 8, y + 4, "text-anchor=\"end\" fill=\"#555\"",
               fmt::format("{:.6g}", i * step_));
    }
    double free_from = 0;
    for (const double value : x_values_) {
      const double x = across(value);
      text_ += fmt::format("<path d=\"M{:.1f} {:.1f}v5\" stroke=\"#333\"/>\n", x, down(0));
      const std::string label = fmt::format("{:g}", value);
      const double half = 4.0 * static_cast<double>(label.size()) + 3;
      if (x - half < free_from) continue;
      free_from = x + half;
      add_text(x, down(0) + 20, "text-anchor=\"middle\" fill=\"#555\"", label);
    }
  }

  void draw_path(const ChartLine& line, bool bounds, const std::string& style) {
    std::string path;
    bool pen_down = false;
    for (const ChartPoint& point : line.points) {
      const double y = bounds ? point.bound : point.y;
      if (!std::isfinite(y) || (bounds && y <= 0)) {
        pen_down = false;
        continue;
      }
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', across(point.x), down(y));
      pen_down = true;
    }
    if (!path.empty()) text_ += fmt::format("<path d=\"{}\" fill=\"none\" {}/>\n", path, style);
  }

  void draw_line(const ChartLine& line, const char* colour, std::vector<Label>& labels) {
    draw_path(line, true,
              fmt::format("stroke=\"{}\" stroke-opacity=\"0.5\" stroke-dasharray=\"3 4\"", colour));
    draw_path(line, false, fmt::format("stroke=\"{}\" stroke-width=\"2\"", colour));
    double last = std::nan("");
    for (const ChartPoint& point : line.points) {
      if (!std::isfinite(point.y)) continue;
      text_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{}: {:g}, {:.6g}"
          "</title></circle>\n",
          across(point.x), down(point.y), colour, markup_text(line.name), point.x, point.y);
      last = down(point.y);
    }
    if (!std::isnan(last)) labels.push_back({last, line.name, colour});
  }

  // Names beside the ends of their lines, moved apart where they would cover each other.
  void draw_labels(std::vector<Label>& labels) {
    constexpr double kDistance = 16;
    std::stable_sort(labels.begin(), labels.end(),
                     [](const Label& a, const Label& b) { return a.y < b.y; });
    for (std::size_t i = 1; i < labels.size(); ++i) {
      labels[i].y = std::max(labels[i].y, labels[i - 1].y + kDistance);
    }
    double lowest = down(0) - 2;
    for (std::size_t i = labels.size(); i-- > 0; lowest -= kDistance) {
      labels[i].y = std::min(labels[i].y, lowest);
    }
    for (const Label& label : labels) {
      add_text(kWidth - kRight + 4, label.y + 4, fmt::format("fill=\"{}\"", label.colour).c_str(),
               label.text);
    }
  }

  const LineChart& chart_;
  double top_;
  std::vector<double> x_values_;
  double y_most_ = 0;
  double step_ = 1;
  double y_top_ = 1;
  std::string text_;
};

}  // namespace

std::string svg_text(std::span<const LineChart> charts) {
  const double height = kHeight * static_cast<double>(std::max<std::size_t>(charts.size(), 1));
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, height);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    text += ChartDrawing(charts[i], kHeight * static_cast<double>(i)).run();
  }
  return text + "</svg>\n";
}

}  // namespace placewright
