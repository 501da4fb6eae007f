// SPDX-License-Identifier: Apache-2.0
// Waits for single processes, whose names have PIDs: a program that starts many has one for each. As in
// profile/children.c.

const KINDS = [
  { one: "[child: ", many: "[child: " },
  { one: "[other: process ", many: "[other: " },
  { one: "[poll: epoll until process ", many: "[poll: epoll until any of " },
];

// The kind of a wait that names one process, or undefined.
export const childKind = (functions, key) =>
  functions.state[key] ? KINDS.find(({ one }) => functions.name[key].startsWith(one) && /^\d+\]$/.test(functions.name[key].slice(one.length))) : undefined;

// The name of waits of a kind for several processes, and the search that finds them.
export const childrenName = (kind, processes) => `${kind.many}${processes} processes]`;
export const childrenSearch = (kind) => `^${kind.one.replace("[", "\\[")}\\d`;
