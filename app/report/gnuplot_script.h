// A GnuplotScript collects all pictures of an experiment in one script, so that gnuplot starts once. It also
// has what these pictures share.
#pragma once

#include <cstddef>
#include <string>

namespace antichain {

// These colours can be told apart by colour-blind readers. They come in the order of the plan's graph.
constexpr size_t plot_colours = 8;
const char* plot_colour(size_t i);  // after the last, the first comes again

// Returns the words as a gnuplot string.
std::string gnuplot_string(const std::string& words);

// A PlotList joins the plots of one picture with commas.
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
  // Begins a picture and returns its file, relative to the folder.
  std::string begin(const Picture&);
  void add(const std::string& lines) { script_ += lines + "\n"; }
  // Adds rows of data for a plot and returns their name in plot commands.
  std::string data(const std::string& rows);
  std::string str() const { return script_ + "set output\n"; }

 private:
  std::string folder_, script_;
  int blocks_ = 0;
};

}  // namespace antichain
