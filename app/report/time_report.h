// This file makes the table at the end of a job's log: where every rank's time went, in seconds and as
// fractions, and how evenly the ranks worked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "pipeline/run/time_sheet.h"

namespace antichain {

// Returns the largest fraction of its time for which a rank was ready to run while others had its core.
double starved_share(const std::vector<TimeSheet>&);
// Returns "rank 1 on n2 had no core for 50.0 % of its time" for that rank, where the fraction makes the times
// doubtful; else "".
std::string starved_rank(const std::vector<TimeSheet>&, const std::vector<std::string>& host_of_rank);

// Returns the longest computing time of a rank over the mean; 1 means that all are equal.
double load_imbalance(const std::vector<TimeSheet>&);

std::string describe(const std::vector<TimeSheet>&, const std::vector<std::string>& host_of_rank);
nlohmann::ordered_json to_json(const std::vector<TimeSheet>&);

}  // namespace antichain
