/* bcryptprimitives.dll for Wine 8, which lacks it: Rust's standard library gets its random numbers there. */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
	return RtlGenRandom(data, size);
}
