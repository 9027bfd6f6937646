// This file writes the report of a speedup study: tables first, then pictures, and its provenance at the end.
#pragma once

#include <string>
#include <vector>

#include "app/experiment/experiment_figures.h"
#include "app/experiment/report_document.h"

namespace antichain {

ReportDocument speedup_report(const SpeedupOptions&, const Sweep&, const StudyFigures&);
// Returns a sentence where other programs had the cores during measured training, else "".
std::string starved_cells(const std::vector<Cell>&);
// Returns a few lines for the terminal: the best speedup of each model.
std::string speedup_summary(const SpeedupOptions&, const std::vector<Cell>&);

}  // namespace antichain
