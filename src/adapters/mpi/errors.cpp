#include "adapters/mpi/errors.hpp"

#include <cstdio>
#include <string>

namespace rondo::mpi_programs {
namespace {

int code_of_rondo() {
  static const int code = [] {
    int error_class = MPI_ERR_OTHER;
    int made = MPI_ERR_OTHER;
    if (PMPI_Add_error_class(&error_class) != MPI_SUCCESS) return MPI_ERR_OTHER;
    if (PMPI_Add_error_code(error_class, &made) != MPI_SUCCESS) return MPI_ERR_OTHER;
    return made;
  }();
  return code;
}

}  // namespace

int report(MPI_Comm comm, const std::exception& error) noexcept {
  const int code = code_of_rondo();
  // The program may end before it can ask MPI for the text, which MPI cuts to a few lines.
  std::fprintf(stderr, "rondo: %s\n", error.what());
  if (code != MPI_ERR_OTHER) {
    const std::string text = std::string(error.what()).substr(0, MPI_MAX_ERROR_STRING - 1);
    PMPI_Add_error_string(code, text.c_str());
  }
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace rondo::mpi_programs
