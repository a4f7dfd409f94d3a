/** @jsxImportSource preact */
// Whose things the console shows: one workspace, or all of them. The choice stays in this browser.

import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { type ListAnswer, useResource } from './use-resource.ts'

export interface ShownWorkspace {
  readonly id: string
  readonly name: string
}

export interface Workspaces {
  /** undefined = not known yet. */
  readonly workspaces: readonly ShownWorkspace[] | undefined
  /** undefined = all, once it is decided. */
  readonly chosen: ShownWorkspace | undefined
  /** Whether it is known which one is chosen: nobody wants to see all for a moment first. */
  readonly isDecided: boolean
  choose(id: string): void
}

const WorkspaceContext = createContext<Workspaces>({
  workspaces: undefined,
  chosen: undefined,
  isDecided: false,
  choose() {},
})
const storageName = 'tollgate-workspace'

export function WorkspaceProvider({ children }: { readonly children: ComponentChildren }) {
  const { value, refusal } = useResource<ListAnswer<ShownWorkspace>>('/api/workspaces?limit=200')
  const [id, setId] = useState('')
  useEffect(() => setId(localStorage.getItem(storageName) ?? ''), [])
  const choose = (next: string) => {
    localStorage.setItem(storageName, next)
    setId(next)
  }
  const workspaces = value?.data
  const chosen = workspaces?.find((workspace) => workspace.id === id)
  // Where they cannot be had, what a page asks for is most likely refused too, and says why.
  const isDecided = value !== undefined || refusal !== undefined
  return (
    <WorkspaceContext.Provider value={{ workspaces, chosen, isDecided, choose }}>{children}</WorkspaceContext.Provider>
  )
}

export function useWorkspaces(): Workspaces {
  return useContext(WorkspaceContext)
}

export function WorkspaceSwitch() {
  const { workspaces = [], chosen, choose } = useWorkspaces()
  return (
    <label class="field">
      <span>Workspace</span>
      <select value={chosen?.id ?? ''} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        <option value="">All workspaces</option>
        {workspaces.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
