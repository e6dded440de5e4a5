#include "adapters/mpi/errors.hpp"

#include <array>
#include <cstdio>

namespace rondo::mpi_programs {
namespace {

int code_of_rondo() {
  static const int code = []() -> int {  // some MPIs have enumerators for codes
    int error_class = MPI_ERR_OTHER;
    int made = MPI_ERR_OTHER;
    if (PMPI_Add_error_class(&error_class) != MPI_SUCCESS) return MPI_ERR_OTHER;
    if (PMPI_Add_error_code(error_class, &made) != MPI_SUCCESS) return MPI_ERR_OTHER;
    return made;
  }();
  return code;
}

}  // namespace

int code_for(const std::exception& error) noexcept {
  const int code = code_of_rondo();
  if (code != MPI_ERR_OTHER) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    std::snprintf(text.data(), text.size(), "%s", error.what());
    PMPI_Add_error_string(code, text.data());
  }
  return code;
}

int report(MPI_Comm comm, const std::exception& error) noexcept {
  const int code = code_for(error);
  // With the standard ABI, Intel MPI 2021.19 ends the program in MPI_Comm_call_errhandler even if
  // the handler is MPI_ERRORS_RETURN.
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  const bool got = PMPI_Comm_get_errhandler(comm, &handler) == MPI_SUCCESS;
  const bool only_returns = got && handler == MPI_ERRORS_RETURN;
  if (got) PMPI_Errhandler_free(&handler);
  if (!only_returns) PMPI_Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace rondo::mpi_programs
