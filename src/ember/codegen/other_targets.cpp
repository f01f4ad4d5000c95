// lld initialises every target that LLVM was built with. Ember generates code for this machine's only, so the others
// are empty here instead of forty megabytes in the library.
#define EMBER_EMPTY_TARGET(name)                        \
    extern "C" void LLVMInitialize##name##TargetInfo(); \
    extern "C" void LLVMInitialize##name##Target();     \
    extern "C" void LLVMInitialize##name##TargetMC();   \
    extern "C" void LLVMInitialize##name##AsmPrinter(); \
    extern "C" void LLVMInitialize##name##AsmParser();  \
    void LLVMInitialize##name##TargetInfo() {}          \
    void LLVMInitialize##name##Target() {}              \
    void LLVMInitialize##name##TargetMC() {}            \
    void LLVMInitialize##name##AsmPrinter() {}          \
    void LLVMInitialize##name##AsmParser() {}

EMBER_EMPTY_TARGET(AMDGPU)
EMBER_EMPTY_TARGET(ARM)
EMBER_EMPTY_TARGET(AVR)
EMBER_EMPTY_TARGET(BPF)
EMBER_EMPTY_TARGET(Hexagon)
EMBER_EMPTY_TARGET(Lanai)
EMBER_EMPTY_TARGET(LoongArch)
EMBER_EMPTY_TARGET(M68k)
EMBER_EMPTY_TARGET(MSP430)
EMBER_EMPTY_TARGET(Mips)
EMBER_EMPTY_TARGET(NVPTX)
EMBER_EMPTY_TARGET(PowerPC)
EMBER_EMPTY_TARGET(RISCV)
EMBER_EMPTY_TARGET(Sparc)
EMBER_EMPTY_TARGET(SystemZ)
EMBER_EMPTY_TARGET(VE)
EMBER_EMPTY_TARGET(WebAssembly)
EMBER_EMPTY_TARGET(XCore)
EMBER_EMPTY_TARGET(Xtensa)
#if !defined(__x86_64__)
EMBER_EMPTY_TARGET(X86)
#endif
#if !defined(__aarch64__)
EMBER_EMPTY_TARGET(AArch64)
#endif
