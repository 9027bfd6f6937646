// The report of a speedup study: tables first, pictures after them, what it was made with at the end.
#pragma once

#include <string>
#include <vector>

#include "app/experiment/experiment_figures.h"
#include "app/experiment/report_document.h"

namespace antichain {

ReportDocument speedup_report(const SpeedupOptions&, const Sweep&, const StudyFigures&);
// A sentence where others had the cores that training was measured on, else "".
std::string starved_cells(const std::vector<Cell>&);
// A few lines for the terminal: the best of each model.
std::string speedup_summary(const SpeedupOptions&, const std::vector<Cell>&);

}  // namespace antichain
