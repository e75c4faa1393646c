#include "torch_door.h"

namespace litz {

TorchDoor& TorchDoor::get() {
  static TorchDoor* door = nullptr;
  if (door == nullptr) door = new TorchDoor();
  return *door;
}

}  // namespace litz
