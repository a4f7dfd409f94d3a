// Things that a file declares are changed by that file alone: whoever else changed one would see it undone by the next
// `config apply`, and the file would no longer say what is in force.

import { type Failure, invalidRequest } from '../kernel/failure.ts'
import type { Act } from './audit.ts'

/** A file that was applied, or whoever has the management token. */
export type ManagedBy = 'api' | 'file'

export function managerOf({ managedBy }: Act): ManagedBy {
  return managedBy ?? 'api'
}

const wayOut = {
  workspace: '',
  project: '',
  key: ' If its secret leaked, rotate it: that ends the secret and leaves the key as the file has it.',
} as const

/** undefined = it may be changed so. */
export function refuseChange(
  kind: keyof typeof wayOut,
  thing: { readonly managedBy: ManagedBy },
  act: Act,
): Failure | undefined {
  if (thing.managedBy === 'api' || managerOf(act) === 'file') return undefined
  const message = `This ${kind} is managed by a file; change it there and run \`tollgate config apply FILE\`.${wayOut[kind]}`
  return invalidRequest(message)
}
