// Line charts as self-contained SVG: no scripts, no fonts or styles from elsewhere.
//
// Every line ends with its name in its own colour, so that no legend has to be read. The y axis
// begins at 0; the x axis is logarithmic where asked. Ticks of x are the values there are.

#pragma once

#include <span>
#include <string>
#include <vector>

namespace placewright {

struct ChartPoint {
  double x = 0;
  double y = 0;      // not finite: the line has a gap here
  double bound = 0;  // drawn as a thin dashed line where it is above 0
};

struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points;  // by increasing x
};

struct LineChart {
  std::string title;
  std::string subtitle;
  std::string x_title;
  std::string y_title;
  bool logarithmic = false;
  std::vector<ChartLine> lines;
};

// One below the other.
std::string svg_text(std::span<const LineChart> charts);

}  // namespace placewright
