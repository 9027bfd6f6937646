#include "pipeline/host/launcher_watch.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "framework/say.h"
#include "pipeline/host/launch.h"

namespace antichain {

LauncherWatch::LauncherWatch() {
  if (!has_launcher()) return;
  thread_ = std::thread([this, launcher = ::getppid()] {
    while (!done_ && ::getppid() == launcher) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (done_) return;
    note("the launcher that started this rank has gone: it stops as by SIGTERM");
    ::kill(::getpid(), SIGTERM);
  });
}

LauncherWatch::~LauncherWatch() {
  done_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace antichain
