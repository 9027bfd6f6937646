// The figure of a step has a row for every rank, and a box for every forward, backward and update, as long as
// it took.
#pragma once

#include <string>
#include <vector>

#include "app/report/gnuplot_script.h"

namespace antichain {

struct TimelineBox {
  int rank = 0;
  std::string kind;     // as category_of()
  int microbatch = -1;  // −1: none, or all
  double start_s = 0, end_s = 0;
};

// Adds the figure to the script and returns its file, or "" where nothing computes. Boxes that are wide
// enough show their micro-batch's number. Beside each row stands the fraction in which the rank neither
// computes nor updates.
std::string draw_timeline(GnuplotScript&, const std::vector<TimelineBox>&, int ranks, const std::string& name,
                          const std::string& title);

}  // namespace antichain
