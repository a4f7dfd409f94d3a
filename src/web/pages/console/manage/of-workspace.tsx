/** @jsxImportSource preact */
// A page about one workspace: its head, and the choice of a workspace where all of them are shown.

import type { ComponentChildren } from 'preact'
import { Empty, Loading } from '../parts/resource-view.tsx'
import { useWorkspaces } from '../parts/workspaces.tsx'

export interface OfWorkspaceProps {
  readonly title: string
  readonly lede: string
  children(workspaceId: string): ComponentChildren
}

export function OfWorkspace({ title, lede, children }: OfWorkspaceProps) {
  const { workspaces, chosen, choose } = useWorkspaces()
  // The only one needs no choice.
  const shown = chosen ?? (workspaces?.length === 1 ? workspaces[0] : undefined)
  return (
    <>
      <header class="manage-head">
        <h1>{title}</h1>
        <p class="lede">{lede}</p>
      </header>
      {workspaces === undefined && <Loading what="the workspaces" />}
      {workspaces !== undefined && !shown && (
        <Empty title="Of which workspace?">
          <ul class="plain choices">
            {workspaces.map(({ id, name }) => (
              <li key={id}>
                <button type="button" class="button quiet" onClick={() => choose(id)}>
                  {name}
                </button>
              </li>
            ))}
          </ul>
        </Empty>
      )}
      {shown && (
        <div class="manage" key={shown.id}>
          {children(shown.id)}
        </div>
      )}
    </>
  )
}
