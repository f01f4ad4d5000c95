// The artifact container: SHA-256, key documents and golden keys, entries against every kind of damage, the loader.
#include "ember/artifact/entry.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "ember/artifact/isa.h"
#include "ember/artifact/key.h"
#include "ember/artifact/load.h"
#include "ember/support/sha256.h"

namespace ember {
namespace {

std::string hex_of(const Digest& digest) {
    return Key{digest}.hex();
}

std::string random_bytes(size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::string bytes(size, '\0');
    std::ranges::generate(bytes, [&] { return static_cast<char>(random()); });
    return bytes;
}

// SHA-256.

TEST(Sha256, VectorsOfTheStandard) {
    EXPECT_EQ(hex_of(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hex_of(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex_of(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hex_of(sha256(std::string(1000000, 'a'))),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, EqualsOpenSslAtEverySizeAndSplit) {
    const std::string bytes = random_bytes(700, 1);
    for (size_t size = 0; size <= bytes.size(); ++size) {
        Digest expected;
        SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), size, expected.data());
        const std::string_view part = std::string_view(bytes).substr(0, size);
        ASSERT_EQ(sha256(part), expected) << size;
        ASSERT_EQ(Sha256().update(part.substr(0, size / 3)).update(part.substr(size / 3)).finish(), expected) << size;
    }
}

TEST(Sha256, PortableAndFastestAgree) {
    const std::string bytes = random_bytes(64 * 33, 2);
    const auto* blocks = reinterpret_cast<const uint8_t*>(bytes.data());
    uint32_t portable[8] = {1, 2, 3, 4, 5, 6, 7, 8}, fastest[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    detail::sha256_blocks_portable(portable, blocks, 33);
    detail::sha256_blocks_fastest()(fastest, blocks, 33);
    EXPECT_TRUE(std::ranges::equal(portable, fastest));
}

// Keys.

KeyDocument sample_document() {
    KeyDocument document;
    document.add("ember", "build 1").add("llvm", "19.1").add("target", "x86_64-linux-gnu").add("isa", "avx2,fma");
    document.add("options", "").add("graph", "func @seed(%0: f32[n,64]) {\n  return %0\n}\n");
    return document;
}

TEST(KeyDocument, GoldenVectors) {
    // Made by another implementation (Python's hashlib). A change here makes every stored entry miss: then the header
    // of the grammar must change too.
    EXPECT_EQ(KeyDocument().to_text(), "ember-key 1\n");
    EXPECT_EQ(KeyDocument().key().hex(), "fcf70e6cbd02a8464755b8b563b8492be93b4009190ef71446ec6b3d09ba729f");
    EXPECT_EQ(sample_document().to_text(),
              "ember-key 1\nember 7\nbuild 1\nllvm 4\n19.1\ntarget 16\nx86_64-linux-gnu\nisa 8\navx2,fma\n"
              "options 0\n\ngraph 42\nfunc @seed(%0: f32[n,64]) {\n  return %0\n}\n\n");
    EXPECT_EQ(sample_document().key().hex(), "5570b0354d2dc09652a76492776619e1c58d0cec8146ef9698e55a50d88decaf");
}

TEST(KeyDocument, KeyIgnoresLocaleAndFolder) {
    const Key before = sample_document().key();
    const std::filesystem::path here = std::filesystem::current_path();
    for (const char* locale : {"C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8"}) {
        std::setlocale(LC_ALL, locale);
        std::filesystem::current_path("/");
        EXPECT_EQ(sample_document().key(), before);
    }
    std::setlocale(LC_ALL, "C");
    std::filesystem::current_path(here);
}

TEST(KeyDocument, AnyChangeOfAnyFieldChangesTheKey) {
    const std::vector<KeyField> fields = sample_document().fields();
    std::vector<std::vector<KeyField>> variants = {fields};
    for (size_t i = 0; i < fields.size(); ++i) {
        auto with = [&](auto change) {
            variants.push_back(fields);
            change(variants.back());
        };
        with([&](auto& f) { f[i].value += " "; });
        with([&](auto& f) { f[i].value += '\0'; });
        with([&](auto& f) { f[i].value = "x" + f[i].value; });
        with([&](auto& f) { f[i].name += "x"; });
        with([&](auto& f) { f.erase(f.begin() + static_cast<long>(i)); });
        with([&](auto& f) { f.insert(f.begin() + static_cast<long>(i), {"added", ""}); });
        with([&](auto& f) { std::swap(f[i], f[(i + 1) % f.size()]); });
        // A value that imitates the fields after it.
        with([&](auto& f) { f[i].value += "\nllvm 4\n19.1"; });
    }
    std::vector<Key> keys;
    for (const auto& variant : variants) {
        KeyDocument document;
        for (const KeyField& field : variant) {
            document.add(field.name, field.value);
        }
        keys.push_back(document.key());
    }
    std::ranges::sort(keys);
    EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
}

TEST(KeyDocument, ReadsWhatItWrites) {
    KeyDocument document = sample_document();
    document.add("raw", std::string("\n 3\nab\0\xff", 9)).add("last.of_all9", "");
    auto parsed = KeyDocument::parse(document.to_text());
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    EXPECT_EQ(*parsed, document);
    EXPECT_EQ(*parsed->find("raw"), *document.find("raw"));
    EXPECT_EQ(parsed->find("missing"), nullptr);
}

TEST(KeyDocument, RejectsWhatItWouldNotWrite) {
    const std::pair<const char*, const char*> kCases[] = {
        {"", "offset 0"},
        {"ember-key 2\n", "offset 0"},
        {"ember-key 1\na", "offset 12"},
        {"ember-key 1\nA 0\n\n", "offset 12"},
        {"ember-key 1\n9 0\n\n", "offset 12"},
        {"ember-key 1\na -1\n\n", "expected the length"},
        {"ember-key 1\na 01\nx\n", "expected the length"},
        {"ember-key 1\na 1 \nx\n", "expected the length"},
        {"ember-key 1\na 99999999999999999999\nx\n", "expected the length"},
        {"ember-key 1\na 18446744073709551615\nx\n", "does not end"},
        {"ember-key 1\na 1\nxy\n", "does not end"},
        {"ember-key 1\na 1\nx", "does not end"},
        {"ember-key 1\na 0\n\na 0\n\n", "twice"},
    };
    for (auto [text, expected] : kCases) {
        auto parsed = KeyDocument::parse(text);
        ASSERT_FALSE(parsed.ok()) << text;
        EXPECT_NE(parsed.error().to_string().find(expected), std::string::npos) << parsed.error().to_string();
    }
}

TEST(KeyDocument, MisuseIsABug) {
    KeyDocument document = sample_document();
    EXPECT_THROW(document.add("graph", "again"), InternalError);
    EXPECT_THROW(document.add("Upper", ""), InternalError);
    EXPECT_THROW(document.add("", ""), InternalError);
    EXPECT_THROW(document.add(std::string(64, 'a'), ""), InternalError);
}

TEST(Key, HexRoundTrip) {
    const Key key = sample_document().key();
    EXPECT_EQ(Key::from_hex(key.hex()), key);
    EXPECT_EQ(Key::from_hex(key.hex().substr(1)), std::nullopt);
    EXPECT_EQ(Key::from_hex(std::string(64, 'A')), std::nullopt);
    EXPECT_EQ(Key::from_hex(std::string(64, 'g')), std::nullopt);
}

// Entries.

const std::vector<std::string> kHost = {"avx2", "fma", "sse2"};

std::string sample_entry(std::string_view object = "\177ELF and code") {
    const std::string document = sample_document().to_text();
    return pack_entry({object, "{\"signature\": 1}", {"sse2", "avx2", "avx2"}, document});
}

EntryFault check_sample(std::string_view bytes) {
    EntryView view;
    return check_entry(bytes, sample_document().key(), kHost, &view);
}

TEST(Entry, ReadsWhatItPacks) {
    const std::string entry = sample_entry();
    auto view = verify_entry(entry, sample_document().key(), kHost);
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    EXPECT_EQ(view->object, "\177ELF and code");
    EXPECT_EQ(view->metadata, "{\"signature\": 1}");
    EXPECT_EQ(view->document, sample_document().to_text());
    EXPECT_EQ(isa_features(*view), (std::vector<std::string>{"avx2", "sse2"}));
    EXPECT_EQ(view->key, sample_document().key());
    EXPECT_EQ(entry, sample_entry()) << "packing is deterministic";
}

TEST(Entry, EmptyPartsAreFine) {
    const std::string document = KeyDocument().to_text();
    const std::string entry = pack_entry({"", "", {}, document});
    EXPECT_TRUE(verify_entry(entry, key_of_text(document), {}).ok());
    EXPECT_EQ(entry.size(), document.size() + kEntryTrailerSize);
}

TEST(Entry, CutAtEveryLength) {
    const std::string entry = sample_entry();
    for (size_t size = 0; size < entry.size(); ++size) {
        ASSERT_NE(check_sample(std::string_view(entry).substr(0, size)), EntryFault::kNone) << size;
        ASSERT_NE(check_sample(std::string_view(entry).substr(entry.size() - size)), EntryFault::kNone) << size;
        std::string zero_tail = entry.substr(0, size) + std::string(entry.size() - size, '\0');
        ASSERT_NE(check_sample(zero_tail), EntryFault::kNone) << size;
    }
}

TEST(Entry, EveryBitFlipped) {
    std::string entry = sample_entry();
    for (size_t bit = 0; bit < entry.size() * 8; ++bit) {
        entry[bit / 8] = static_cast<char>(entry[bit / 8] ^ (1 << bit % 8));
        ASSERT_NE(check_sample(entry), EntryFault::kNone) << bit;
        entry[bit / 8] = static_cast<char>(entry[bit / 8] ^ (1 << bit % 8));
    }
    EXPECT_EQ(check_sample(entry), EntryFault::kNone);
}

TEST(Entry, BytesAddedAnywhere) {
    const std::string entry = sample_entry();
    for (size_t at = 0; at <= entry.size(); ++at) {
        std::string longer = entry;
        longer.insert(at, 1, '\0');
        ASSERT_NE(check_sample(longer), EntryFault::kNone) << at;
    }
}

TEST(Entry, OfAnotherKey) {
    KeyDocument other = sample_document();
    other.add("more", "");
    EntryView view;
    EXPECT_EQ(check_entry(sample_entry(), other.key(), kHost, &view), EntryFault::kKey);
}

/// The offset of a field of the trailer, see entry.h.
size_t trailer_at(const std::string& entry, size_t offset) {
    return entry.size() - kEntryTrailerSize + offset;
}

TEST(Entry, DocumentThatIsNotTheKeys) {
    // Made by a writer with a bug: digest and key agree, the document is another one.
    std::string entry = sample_entry();
    const size_t at = entry.find("19.1");
    entry[at] = '2';
    EXPECT_EQ(check_sample(entry), EntryFault::kDigest);
    EntryView view;
    ASSERT_EQ(split_entry(entry, &view), EntryFault::kNone);
    EXPECT_EQ(check_entry(entry, key_of_text(view.document), kHost, &view), EntryFault::kKey);
}

TEST(Entry, PayloadEditedWithChecksumsKept) {
    std::string entry = sample_entry();
    const std::string other = sample_entry("\177ELF and Code");
    ASSERT_EQ(entry.size(), other.size());
    entry.replace(0, 13, other.substr(0, 13));
    EXPECT_EQ(check_sample(entry), EntryFault::kDigest);
}

TEST(Entry, LyingSizes) {
    const std::string entry = sample_entry();
    for (size_t field = 0; field < 4; ++field) {
        for (uint64_t size :
             {uint64_t{0}, uint64_t{1}, uint64_t{1} << 20, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 111}) {
            std::string lying = entry;
            std::memcpy(lying.data() + trailer_at(entry, 8 + 8 * field), &size, sizeof(size));
            EXPECT_EQ(check_sample(lying), EntryFault::kCut) << field << " " << size;
        }
    }
    // Sizes that add up to the right sum, but elsewhere.
    std::string moved = entry;
    moved[trailer_at(entry, 8)] -= 1;
    moved[trailer_at(entry, 16)] += 1;
    EXPECT_EQ(check_sample(moved), EntryFault::kDigest);
}

TEST(Entry, OfAnotherFormat) {
    std::string entry = sample_entry();
    entry[trailer_at(entry, 0)] += 1;
    EXPECT_EQ(check_sample(entry), EntryFault::kFormat);
}

TEST(Entry, ForAnotherCpu) {
    EntryView view;
    const Key key = sample_document().key();
    const std::vector<std::string> more = {"avx2", "avx512f", "sse2"}, less = {"fma", "sse2"};
    EXPECT_EQ(check_entry(sample_entry(), key, more, &view), EntryFault::kNone);
    EXPECT_EQ(check_entry(sample_entry(), key, less, &view), EntryFault::kIsa);
    EXPECT_EQ(check_entry(sample_entry(), key, {}, &view), EntryFault::kIsa);
    auto result = verify_entry(sample_entry(), key, less);
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().message.find("instructions"), std::string::npos);
}

TEST(Entry, MutatedEntriesAreRejected) {
    const std::string entry = sample_entry();
    std::mt19937 random(7);
    for (int round = 0; round < 20000; ++round) {
        std::string bytes = entry;
        for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
            const size_t at = random() % bytes.size(), size = random() % (bytes.size() - at);
            switch (random() % 5) {
                case 0:
                    bytes[at] = static_cast<char>(random());
                    break;
                case 1:
                    bytes.erase(at, size % 16);
                    break;
                case 2:
                    bytes.insert(at, entry.substr(random() % entry.size(), size % 16));
                    break;
                case 3:
                    std::fill_n(bytes.begin() + static_cast<long>(at), size, '\0');
                    break;
                default:
                    bytes.replace(at, size % 8, entry.substr(random() % entry.size(), size % 8));
            }
            bytes += bytes.empty() ? "x" : "";
        }
        ASSERT_TRUE(bytes == entry || check_sample(bytes) != EntryFault::kNone) << round;
        if (auto parsed = KeyDocument::parse(std::string_view(bytes).substr(bytes.size() / 4)); parsed.ok()) {
            ASSERT_EQ(parsed->to_text(), bytes.substr(bytes.size() / 4));
        }
    }
}

TEST(HostIsa, SortedAndPlausible) {
    EXPECT_TRUE(std::ranges::is_sorted(host_isa()));
#if defined(__x86_64__)
    const std::vector<std::string> base = {"64bit", "sse", "sse2"};
    EXPECT_TRUE(isa_subset(base, host_isa()));
    EXPECT_EQ(std::ranges::count(host_isa(), "avx2") > 0, __builtin_cpu_supports("avx2") > 0);
    EXPECT_EQ(std::ranges::count(host_isa(), "avx512f") > 0, __builtin_cpu_supports("avx512f") > 0);
#endif
}

// Loading.

std::string object_bytes() {
    std::ifstream file(EMBER_TEST_OBJECT, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

long count_files(const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

long count_maps() {
    std::ifstream file("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

TEST(LoadObject, EachLoadIsIndependent) {
    const std::string bytes = object_bytes();
    auto one = load_object(bytes, "one"), two = load_object(bytes, "two");
    ASSERT_TRUE(one.ok()) << one.error().to_string();
    ASSERT_TRUE(two.ok()) << two.error().to_string();
    auto* bump_one = (*one)->function<int()>("ember_test_bump");
    auto* bump_two = (*two)->function<int()>("ember_test_bump");
    ASSERT_NE(bump_one, nullptr);
    ASSERT_NE(bump_one, bump_two);
    EXPECT_EQ(bump_one(), 1);
    EXPECT_EQ(bump_one(), 2);
    EXPECT_EQ(bump_two(), 1);
    EXPECT_EQ((*one)->symbol("no_such_symbol"), nullptr);
    one = two;  // unloads the first one
    EXPECT_EQ(bump_two(), 2);
}

TEST(LoadObject, ManyLoadsGiveEverythingBack) {
    const std::string bytes = object_bytes();
    ASSERT_TRUE(load_object(bytes, "warm up").ok());
    const long files = count_files("/proc/self/fd"), maps = count_maps();
    for (int round = 0; round < 500; ++round) {
        auto loaded = load_object(bytes, "many");
        ASSERT_TRUE(loaded.ok());
        ASSERT_EQ((*loaded)->function<int()>("ember_test_bump")(), 1) << "an earlier load came back";
    }
    EXPECT_EQ(count_files("/proc/self/fd"), files);
    EXPECT_LE(count_maps(), maps + 8);  // the allocator may map
}

TEST(LoadObject, HoldsNoDescriptor) {
    const std::string bytes = object_bytes();
    const long files = count_files("/proc/self/fd");
    auto loaded = load_object(bytes, "held");
    EXPECT_EQ(count_files("/proc/self/fd"), files);
}

TEST(LoadObject, WithoutMemfd) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("ember-load-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    setenv("TMPDIR", folder.c_str(), 1);
    FileSystem fs = posix_file_system();
    fs.memfd = [](const char*) {
        errno = ENOSYS;
        return -1;
    };
    auto one = load_object(object_bytes(), "file", fs), two = load_object(object_bytes(), "file", fs);
    ASSERT_TRUE(one.ok()) << one.error().to_string();
    ASSERT_TRUE(two.ok()) << two.error().to_string();
    EXPECT_EQ((*one)->function<int()>("ember_test_bump")(), 1);
    EXPECT_EQ((*two)->function<int()>("ember_test_bump")(), 1);
    EXPECT_EQ(count_files(folder.c_str()), 0);
    unsetenv("TMPDIR");
    std::filesystem::remove_all(folder);
}

TEST(LoadObject, WhatIsNoObject) {
    for (std::string_view bytes : {"", "\177EL", "not an object", "\177ELF but no more"}) {
        auto loaded = load_object(bytes, "bad");
        ASSERT_FALSE(loaded.ok());
        EXPECT_EQ(loaded.error().where, "bad");
    }
}

}  // namespace
}  // namespace ember
