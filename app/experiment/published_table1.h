// This file has the figures of the publication that this program's experiments follow: how long its methods
// took to partition ten networks (its Table 1), and the speedups that it reports.
// app/experiment/published_table1.csv holds them and says where they are from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antichain {

struct PublishedRow {
  std::string model;
  int devices = 0;            // GPUs
  std::string handsplit_min;  // of a person's time: minutes, or ">60"
  double cudasize_s = 0, hashrate_s = 0;
  double own_s = 0;  // by the publication's own method
};

// Returns the rows of the file as it was compiled in.
std::string_view published_table1_text();
// Throws Error where a line does not have six fields, or a number is none.
std::vector<PublishedRow> parse_published_table1(std::string_view csv);
// Returns the row of a model on so many devices, or null where the publication has none.
const PublishedRow* published_row(const std::string& model, int devices);

// These are the speedups over one GPU of training on CIFAR-10 by the publication's own method.
struct PublishedSpeedup {
  int devices;
  double speedup;
};
inline constexpr PublishedSpeedup published_speedups[] = {{4, 3.4}, {8, 3.76}};

}  // namespace antichain
