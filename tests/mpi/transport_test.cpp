// The MPI transport keeps what every transport promises. Started by mpirun; a broken promise ends the job with its
// sentence, a deadlock with the watchdog's.
#include <cstdio>
#include <exception>

#include "pipeline/mpi_transport.h"
#include "tests/pipeline/transport_checks.h"

int main() {
  using namespace antichain;
  MpiSession session(30);
  Transport& transport = session.transport();
  for (const testing::TransportCheck& check : testing::transport_checks()) try {
      transport.activity().doing(check.name);
      check.run(transport);
      transport.flush();
      transport.barrier();
      if (transport.rank() == 0) std::printf("%s on %d ranks: passed\n", check.name, transport.size());
    } catch (const std::exception& error) {
      session.end_job(std::string(check.name) + ": " + error.what(), 1);
    }
  return 0;
}
