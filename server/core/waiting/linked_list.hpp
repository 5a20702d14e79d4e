// A list whose links are members of its elements. So it allocates nothing, and an element leaves in constant time.
//
// Thread safety: none.
#pragma once

namespace kilokv::server {

template <class T>
struct Link {
  T* previous = nullptr;
  T* next = nullptr;
};

// Requires: an element is in the list at most once, and outlives its time in the list.
template <class T, Link<T> T::*kLink>
class LinkedList {
 public:
  bool empty() const { return first_ == nullptr; }
  T* first() const { return first_; }  // null if the list is empty
  void append(T* element) {
    element->*kLink = {last_, nullptr};
    (last_ == nullptr ? first_ : (last_->*kLink).next) = element;
    last_ = element;
  }
  void remove(T* element) {
    const Link<T>& link = element->*kLink;
    (link.previous == nullptr ? first_ : (link.previous->*kLink).next) = link.next;
    (link.next == nullptr ? last_ : (link.next->*kLink).previous) = link.previous;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace kilokv::server
