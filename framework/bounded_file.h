// Reads whole files that somebody else made. A read error throws Error and never counts as the end of the
// file. Every kind of file has a largest size. Folders, devices and endless files are refused.
#pragma once

#include <cstdint>
#include <string>

namespace antichain {

// These are the largest files that are read whole, in bytes; docs/command-line.md lists them.
constexpr int64_t most_settings_bytes = int64_t(1) << 20;
constexpr int64_t most_text_bytes = int64_t(256) << 20;   // a profile, a plan, a cluster, cuts, a schedule
constexpr int64_t most_image_bytes = int64_t(256) << 20;  // JPEG or PNG
constexpr int64_t most_weights_bytes = int64_t(8) << 30;
constexpr int64_t most_metrics_bytes = int64_t(4) << 30;  // one line a step

constexpr double most_pipe_silence_s = 60;

// Returns the bytes of the file, or of a pipe up to its end. Throws Error naming the path when it can't be
// read (with the system's reason), is a folder or a device, has more than `most_bytes`, does not fit into
// memory (ExitCode::out_of_memory), or is a pipe from which nothing comes for so many seconds.
std::string read_bounded(const std::string& path, int64_t most_bytes,
                         double most_silence_s = most_pipe_silence_s);

}  // namespace antichain
