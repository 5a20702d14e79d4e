// A binary heap whose elements know their places in it. So any of them can leave in logarithmic time.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kilokv::server {

inline constexpr std::uint32_t kNoPlace = UINT32_MAX;

// `kBefore`: whether the first element comes before the second one. `kPlace`: where an element keeps its place; it is
// kNoPlace while the element is not in the heap. Requires: what kBefore compares does not change meanwhile.
template <class T, bool (*kBefore)(const T&, const T&), std::uint32_t T::*kPlace>
class IndexedHeap {
 public:
  bool empty() const { return heap_.empty(); }
  T* first() const { return heap_.front(); }  // Requires: it is not empty
  static bool has(const T& element) { return element.*kPlace != kNoPlace; }
  void push(T* element) {
    heap_.push_back(element);
    rise(heap_.size() - 1, element);
  }
  void remove(T* element) {
    T* const last = heap_.back();
    heap_.pop_back();
    const std::size_t place = element->*kPlace;
    element->*kPlace = kNoPlace;
    if (last != element) fill(place, last);
  }

 private:
  void put(std::size_t place, T* element) {
    heap_[place] = element;
    element->*kPlace = static_cast<std::uint32_t>(place);
  }
  // Puts the element at its position on the path from `place`, which is free, to the root.
  void rise(std::size_t place, T* element) {
    while (place > 0 && kBefore(*element, *heap_[(place - 1) / 2])) {
      put(place, heap_[(place - 1) / 2]);
      place = (place - 1) / 2;
    }
    put(place, element);
  }
  // Puts the element at a position from which `place`, which is free, is reached.
  void fill(std::size_t place, T* element) {
    for (;;) {  // the earlier child moves up into the free place until the element fits
      std::size_t child = 2 * place + 1;
      if (child + 1 < heap_.size() && kBefore(*heap_[child + 1], *heap_[child])) ++child;
      if (child >= heap_.size() || !kBefore(*heap_[child], *element)) break;
      put(place, heap_[child]);
      place = child;
    }
    rise(place, element);
  }

  std::vector<T*> heap_;
};

}  // namespace kilokv::server
