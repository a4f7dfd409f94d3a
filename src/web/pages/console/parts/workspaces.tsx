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
  /** undefined = all. */
  readonly chosen: ShownWorkspace | undefined
  choose(id: string): void
}

const WorkspaceContext = createContext<Workspaces>({ workspaces: undefined, chosen: undefined, choose() {} })
const storageName = 'tollgate-workspace'

export function WorkspaceProvider({ children }: { readonly children: ComponentChildren }) {
  const { value } = useResource<ListAnswer<ShownWorkspace>>('/api/workspaces?limit=200')
  const [id, setId] = useState('')
  useEffect(() => setId(localStorage.getItem(storageName) ?? ''), [])
  const choose = (next: string) => {
    localStorage.setItem(storageName, next)
    setId(next)
  }
  const workspaces = value?.data
  const chosen = workspaces?.find((workspace) => workspace.id === id)
  return <WorkspaceContext.Provider value={{ workspaces, chosen, choose }}>{children}</WorkspaceContext.Provider>
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
