#include "app/report/gnuplot_script.h"

#include <fmt/format.h>

#include <array>

namespace antichain {

// These are the colours of partition/search/dot.cpp: M. Okabe and K. Ito, "Color Universal Design", 2008.
const char* plot_colour(size_t i) {
  constexpr std::array<const char*, plot_colours> colours = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                                             "#56B4E9", "#D55E00", "#B5A900", "#666666"};
  return colours[i % colours.size()];
}

std::string gnuplot_string(const std::string& words) {
  std::string text = "\"";
  for (const char c : words) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

std::string GnuplotScript::begin(const Picture& picture) {
  const std::string file = "figures/" + picture.name + ".svg";
  script_ += fmt::format(
      "reset\nset terminal svg size {},{} noenhanced font 'Helvetica,13' background rgb 'white'\nset output "
      "{}\n"
      "set title {}\nset xlabel {}\nset ylabel {}\nset key outside right top Left reverse samplen 2\n"
      "set border 3 lc rgb '#666666'\nset tics nomirror out\nset grid ytics lc rgb '#dddddd'\n",
      picture.width, picture.height, gnuplot_string(folder_ + "/" + file), gnuplot_string(picture.title),
      gnuplot_string(picture.x), gnuplot_string(picture.y));
  return file;
}

std::string GnuplotScript::data(const std::string& rows) {
  const std::string name = fmt::format("$data{}", blocks_++);
  script_ += fmt::format("{} << EOD\n{}EOD\n", name, rows);
  return name;
}

}  // namespace antichain
