# A room is a folder with a library of its own. The library links those of the rooms that its files include,
# so a room that links no room with MPI builds without MPI.
function(antichain_room room)  # antichain_room(pipeline/schedule SOURCES … LINK …)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  string(REPLACE / _ name ${room})
  add_library(antichain_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(antichain_${name} PUBLIC ${ARG_LINK})
  # Files are compiled together, because most of their compile time is spent on the headers they share.
  set_target_properties(antichain_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  set_property(GLOBAL APPEND PROPERTY ANTICHAIN_ROOMS antichain_${name})
endfunction()

# Adds the rooms of a folder, and the library antichain_<folder> that stands for all of them.
function(antichain_rooms folder)  # antichain_rooms(pipeline schedule simulate …)
  add_library(antichain_${folder} INTERFACE)
  foreach(room IN LISTS ARGN)
    add_subdirectory(${room})
    target_link_libraries(antichain_${folder} INTERFACE antichain_${folder}_${room})
  endforeach()
endfunction()
