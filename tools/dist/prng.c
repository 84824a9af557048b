/* A bcryptprimitives.dll for Wine 8, which has none. Rust's standard library gets random numbers from this DLL. */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
	return RtlGenRandom(data, size);
}
