// The table of memory says what that of each rank is taken by. Plans, predictions, refusals and the end of a
// run print it.
#pragma once

#include <string>
#include <vector>

#include "app/cli/table.h"
#include "pipeline/stage/memory_need.h"

namespace antichain {

// A MemoryRow is that of one rank, or of the ranks that are threads of one process.
struct MemoryRow {
  std::string ranks = {}, host = {};  // the host may be unknown
  MemoryNeed need = {};
  int64_t predicted_bytes = 0;  // in all
  int64_t measured_bytes = 0;   // 0: not measured
};
std::vector<MemoryRow> memory_rows(const std::vector<MemoryShares>&);

// Columns that are empty in all rows are left out.
std::string memory_table(const std::vector<MemoryRow>&, Table::Look = Table::Look::coloured);

}  // namespace antichain
