// A tiny object for the tests of the loader: state of its own, so that two loads can be told apart.
static int count = 0;

int ember_test_bump(void) { return ++count; }
int ember_test_add(int a, int b) { return a + b; }
