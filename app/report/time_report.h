// The table that a job's log ends in: where every rank's time went, in seconds and as shares, and how evenly
// the ranks worked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "pipeline/run/time_sheet.h"

namespace antichain {

// The largest share of its time for which a rank was ready to run while others had its core.
double starved_share(const std::vector<TimeSheet>&);
// "rank 1 on n2 had no core for 50.0 % of its time", of that rank, where the share makes the times doubtful;
// else "".
std::string starved_rank(const std::vector<TimeSheet>&, const std::vector<std::string>& host_of_rank);

// The longest computing time of a rank over the mean; 1: all the same.
double load_imbalance(const std::vector<TimeSheet>&);

std::string describe(const std::vector<TimeSheet>&, const std::vector<std::string>& host_of_rank);
nlohmann::ordered_json to_json(const std::vector<TimeSheet>&);

}  // namespace antichain
