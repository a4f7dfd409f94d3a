// Whose catalog is shown: everybody's, or what one key or one project can use. What was chosen stays in this tab and is
// gone with it; a key is sent to GET /v1/models and nowhere else.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { SeenModel } from '../../catalog/seen-entries.ts'

export type Viewer =
  | { readonly kind: 'key'; readonly secret: string }
  | { readonly kind: 'project'; readonly id: string; readonly name: string }

export interface Narrowing {
  /** Absent = everybody. */
  readonly viewer?: Viewer
  /** What the viewer can use; absent = everything is shown. */
  readonly seen?: readonly SeenModel[]
  readonly isAsking: boolean
  /** Why the list is not narrowed, or not as it is now. */
  readonly refusal: string
  ask(viewer: Viewer): void
  clear(): void
}

const place = 'tollgate-viewer'

interface State {
  readonly viewer?: Viewer
  readonly seen?: readonly SeenModel[]
  readonly isAsking: boolean
  readonly refusal: string
}

const everybody: State = { isAsking: false, refusal: '' }

/** `accessTurn` grows when what the viewer can use may have changed; then it is asked for again. */
export function useNarrowing(accessTurn: number): Narrowing {
  const [state, setState] = useState(everybody)
  /** The answer to a question that is not the last one is thrown away. */
  const questions = useRef(0)
  const ask = async (viewer: Viewer) => {
    const question = ++questions.current
    setState({ ...everybody, isAsking: true })
    const seen = await readSeen(viewer)
    if (question !== questions.current) return
    if (typeof seen === 'string') {
      sessionStorage.removeItem(place)
      return setState({ ...everybody, refusal: seen })
    }
    sessionStorage.setItem(place, JSON.stringify(viewer))
    setState({ ...everybody, viewer, seen })
  }
  /** What is shown stays until there is something newer; a refusal is shown beside it. */
  const follow = async (viewer: Viewer) => {
    const question = ++questions.current
    const seen = await readSeen(viewer)
    if (question !== questions.current) return
    setState((before) => (typeof seen === 'string' ? { ...before, refusal: seen } : { ...everybody, viewer, seen }))
  }
  useEffect(() => {
    if (accessTurn > 0 && state.viewer) void follow(state.viewer)
  }, [accessTurn])
  useEffect(() => {
    const kept = sessionStorage.getItem(place)
    if (kept !== null) void ask(JSON.parse(kept) as Viewer)
  }, [])
  return {
    ...state,
    ask: (viewer) => void ask(viewer),
    clear() {
      questions.current++
      sessionStorage.removeItem(place)
      setState(everybody)
    },
  }
}

/** A text says why not. */
async function readSeen(viewer: Viewer): Promise<readonly SeenModel[] | string> {
  const answer = await (viewer.kind === 'key'
    ? readJson<{ data: SeenModel[] }>('/v1/models', { authorization: `Bearer ${viewer.secret}` })
    : readJson<{ data: SeenModel[] }>(`/api/projects/${encodeURIComponent(viewer.id)}/models`))
  return typeof answer === 'string' ? answer : answer.data
}

/** A text says why not. */
export async function readJson<Answer>(path: string, headers: Record<string, string> = {}): Promise<Answer | string> {
  try {
    const response = await fetch(path, { headers: { accept: 'application/json', ...headers } })
    const answer = (await response.json()) as Answer & { error?: { message?: string } }
    return response.ok ? answer : (answer.error?.message ?? `The gateway answered ${response.status}.`)
  } catch (thrown) {
    // A key with a character that no header can carry is no key.
    return thrown instanceof TypeError && headers.authorization !== undefined
      ? 'That cannot be a key, or the gateway does not answer.'
      : 'The gateway does not answer. Is it running?'
  }
}
