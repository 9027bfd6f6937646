// The report of experiment table1 sets its results beside those of the publication: for a terminal, as a
// document and as JSON.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "app/experiment/report_document.h"
#include "partition/plan/method.h"

namespace antichain {

inline constexpr std::array table1_methods = {Method::handsplit, Method::cudasize, Method::hashrate,
                                              Method::antichain};

struct Table1Entry {
  double seconds = 0;    // from the profile's text to the plan
  double slowest_s = 0;  // the plan's slowest stage, a micro-batch
  bool proved = false;
};
struct Table1Row {
  std::string model;
  int devices = 0;
  std::vector<std::optional<Table1Entry>> entries;  // one per method; none where it has no plan
  std::vector<std::string> refusals;                // a sentence each
};

// Returns how many times as long the publication's own method took as antichain does here, or nothing where
// one of them has no time.
std::optional<double> times_as_fast(const Table1Row&);

// `source` is a sentence that says where the profiles are from.
std::string table1_text(const std::vector<Table1Row>&, const std::string& source);
ReportDocument table1_report(const std::vector<Table1Row>&, const std::string& source);
std::string table1_json(const std::vector<Table1Row>&);

}  // namespace antichain
