// Everything an experiment has gnuplot draw, as one script, so that it starts once; and what all its pictures
// share.
#pragma once

#include <cstddef>
#include <string>

namespace antichain {

// Colours that stay apart for the colour-blind, in the order of the plan's graph.
constexpr size_t plot_colours = 8;
const char* plot_colour(size_t i);  // again from the first after the last

// As a gnuplot string.
std::string gnuplot_string(const std::string& words);

// Plots of one picture, with commas between them.
class PlotList {
 public:
  void add(const std::string& plot) { text_ += (text_.empty() ? "plot " : ", ") + plot; }
  bool empty() const { return text_.empty(); }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

class GnuplotScript {
 public:
  explicit GnuplotScript(std::string folder) : folder_(std::move(folder)) {}

  struct Picture {
    std::string name, title, x, y;  // axes with their units
    int width = 900, height = 480;  // pixels
  };
  // Begins a picture; returns its file, relative to the folder.
  std::string begin(const Picture&);
  void add(const std::string& lines) { script_ += lines + "\n"; }
  // Rows for a plot; returns what the plot calls them.
  std::string data(const std::string& rows);
  std::string str() const { return script_ + "set output\n"; }

 private:
  std::string folder_, script_;
  int blocks_ = 0;
};

}  // namespace antichain
