#include "app/job/memory_table.h"

#include <algorithm>
#include <functional>

#include "app/cli/number_text.h"

namespace antichain {
namespace {

struct MemoryColumn {
  const char* header;
  std::function<int64_t(const MemoryNeed&)> bytes;
  bool always = true;
};

std::vector<MemoryColumn> columns_of_need() {
  const auto share = [](int64_t MemoryShares::*of) {
    return [of](const MemoryNeed& need) { return need.step.*of; };
  };
  return {{"weights\nMiB", share(&MemoryShares::weights)},
          {"versions\nMiB", share(&MemoryShares::versions), false},
          {"gradients\nMiB", share(&MemoryShares::gradients)},
          {"optimiser\nMiB", share(&MemoryShares::optimiser)},
          {"kept\nMiB", share(&MemoryShares::kept)},
          {"working set\nMiB", share(&MemoryShares::working)},
          {"messages\nMiB", share(&MemoryShares::messages)},
          {"scratch\nMiB", share(&MemoryShares::scratch), false},
          {"evaluation\nMiB", std::mem_fn(&MemoryNeed::evaluation), false},
          {"images\nMiB", std::mem_fn(&MemoryNeed::images), false},
          {"engine\nMiB", std::mem_fn(&MemoryNeed::code), false}};
}

}  // namespace

std::vector<MemoryRow> memory_rows(const std::vector<MemoryShares>& ranks) {
  std::vector<MemoryRow> rows;
  for (const MemoryShares& shares : ranks)
    rows.push_back(
        {.ranks = std::to_string(rows.size()), .need = {.step = shares}, .predicted_bytes = shares.bytes()});
  return rows;
}

std::string memory_table(const std::vector<MemoryRow>& rows, Table::Look look) {
  std::vector<MemoryColumn> shown = columns_of_need();
  std::erase_if(shown, [&](const MemoryColumn& column) {
    return !column.always &&
           std::ranges::all_of(rows, [&](const MemoryRow& row) { return column.bytes(row.need) == 0; });
  });
  const bool hosts = std::ranges::any_of(rows, [](const MemoryRow& row) { return !row.host.empty(); });
  const bool measured =
      std::ranges::any_of(rows, [](const MemoryRow& row) { return row.measured_bytes > 0; });
  std::vector<Table::Column> columns = {{"rank"}};
  if (hosts) columns.push_back({"host", Table::Align::left});
  for (const MemoryColumn& column : shown) columns.push_back({column.header});
  columns.push_back({measured ? "predicted\nMiB" : "all\nMiB"});
  if (measured) columns.push_back({"measured\nMiB"});
  Table table(columns);
  for (const MemoryRow& row : rows) {
    std::vector<std::string> cells = {row.ranks};
    if (hosts) cells.push_back(row.host);
    for (const MemoryColumn& column : shown) cells.push_back(mebibytes(column.bytes(row.need)));
    cells.push_back(mebibytes(row.predicted_bytes));
    if (measured) cells.push_back(mebibytes(row.measured_bytes));
    table.add(cells);
  }
  return table.str(0, look);
}

}  // namespace antichain
