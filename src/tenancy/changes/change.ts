// What replicas tell each other: that something changed, never what it is now. Whoever hears it forgets what it
// remembers and asks the database, so that a change heard twice, late or out of order does no harm.

import type { KeyId, ProjectId, WorkspaceId } from '../../kernel/ids.ts'

export type Change =
  | { readonly kind: 'key'; readonly id: KeyId }
  | { readonly kind: 'project'; readonly id: ProjectId }
  | { readonly kind: 'workspace'; readonly id: WorkspaceId }
  /** Of a workspace's own credentials. */
  | { readonly kind: 'credential'; readonly id: WorkspaceId }
  /** Of a model. */
  | { readonly kind: 'price'; readonly id: string }
  | { readonly kind: 'config'; readonly id: string }

/** The number is absent where the database could not be told. */
export interface NumberedChange {
  readonly change: Change
  readonly sequence?: bigint | undefined
}

/** After a key, a project or a workspace changed: what an id names is in its prefix. */
export function changeOf(id: KeyId | ProjectId | WorkspaceId): Change {
  if (isKey(id)) return { kind: 'key', id }
  return isProject(id) ? { kind: 'project', id } : { kind: 'workspace', id: id as WorkspaceId }
}

/** undefined for what is not understood: a newer version may tell of more. */
export function readChange(kind: string, id: string): Change | undefined {
  if (kind === 'key') return isKey(id) ? { kind, id } : undefined
  if (kind === 'project') return isProject(id) ? { kind, id } : undefined
  if (kind === 'workspace' || kind === 'credential') return isWorkspace(id) ? { kind, id } : undefined
  return kind === 'price' || kind === 'config' ? { kind, id } : undefined
}

export function renderChange({ change: { kind, id }, sequence }: NumberedChange): string {
  return JSON.stringify({ kind, id, ...(sequence !== undefined && { sequence: String(sequence) }) })
}

/** undefined for what is not understood: the channel is not ours alone. */
export function parseChange(text: string): NumberedChange | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { kind, id, sequence } = value as Record<string, unknown>
  const change = typeof kind === 'string' && typeof id === 'string' ? readChange(kind, id) : undefined
  if (!change) return undefined
  const isNumber = typeof sequence === 'string' && /^\d{1,18}$/.test(sequence)
  return { change, ...(isNumber && { sequence: BigInt(sequence) }) }
}

const isKey = (id: string): id is KeyId => id.startsWith('key_')
const isProject = (id: string): id is ProjectId => id.startsWith('prj_')
const isWorkspace = (id: string): id is WorkspaceId => id.startsWith('ws_')
