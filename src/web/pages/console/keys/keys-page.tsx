/** @jsxImportSource preact */
// The keys of a workspace: who calls, since when, within which limits; made, rotated and ended here. A secret is shown by
// the sheet after the call that made it, and kept nowhere.

import { useState } from 'preact/hooks'
import type { ConsoleData } from '../../../page-data.ts'
import { LimitsSheet } from '../manage/limits-sheet.tsx'
import { LoadedView } from '../manage/loaded-view.tsx'
import { OfWorkspace } from '../manage/of-workspace.tsx'
import type { Key, KeyWithSecret } from '../manage/things.ts'
import { useLoad } from '../manage/use-load.ts'
import { type KeyAct, KeysTable } from './keys-table.tsx'
import { NewKeySheet } from './new-key-sheet.tsx'
import { readKeys } from './read-keys.ts'
import { RevokeSheet } from './revoke-sheet.tsx'
import { RotateSheet } from './rotate-sheet.tsx'
import { SecretSheet } from './secret-sheet.tsx'

const lede = 'What a program shows to be let through. Each belongs to a project; the workspace’s wallet pays.'

export function KeysPage({ address }: ConsoleData) {
  return (
    <OfWorkspace title="Keys" lede={lede}>
      {(workspaceId) => <KeysView workspaceId={workspaceId} address={address} />}
    </OfWorkspace>
  )
}

interface KeysViewProps {
  readonly workspaceId: string
  readonly address: string
}

type Open =
  | { readonly sheet: 'new' }
  | { readonly sheet: KeyAct; readonly key: Key }
  | { readonly sheet: 'secret'; readonly key: KeyWithSecret; readonly isNew: boolean }

function KeysView({ workspaceId, address }: KeysViewProps) {
  const [open, setOpen] = useState<Open | undefined>(undefined)
  const loaded = useLoad(workspaceId, () => readKeys(workspaceId))
  const close = () => setOpen(undefined)
  const closeAndLoad = () => {
    close()
    loaded.again()
  }
  const showSecret = (key: KeyWithSecret, isNew: boolean) => {
    setOpen({ sheet: 'secret', key, isNew })
    loaded.again()
  }
  return (
    <>
      <LoadedView what="the keys" loaded={loaded}>
        {({ workspace, projects, keys, calls, spent }) => (
          <>
            {projects.length > 0 && (
              <p>
                <button type="button" class="button" onClick={() => setOpen({ sheet: 'new' })}>
                  New key
                </button>
              </p>
            )}
            <KeysTable
              workspace={workspace}
              projects={projects}
              keys={keys}
              calls={calls}
              spent={spent}
              onAct={(sheet, key) => setOpen({ sheet, key })}
            />
            {open?.sheet === 'new' && (
              <NewKeySheet projects={projects} onClose={close} onMade={(key) => showSecret(key, true)} />
            )}
          </>
        )}
      </LoadedView>
      {open?.sheet === 'rotate' && (
        <RotateSheet apiKey={open.key} onClose={close} onRotated={(key) => showSecret(key, false)} />
      )}
      {open?.sheet === 'revoke' && <RevokeSheet apiKey={open.key} onClose={close} onRevoked={closeAndLoad} />}
      {open?.sheet === 'limits' && (
        <LimitsSheet
          whose={`key ${open.key.name}`}
          path={`/api/keys/${open.key.id}/limits`}
          limits={open.key.limits}
          onClose={close}
          onSaved={closeAndLoad}
          onUndone={loaded.again}
        />
      )}
      {open?.sheet === 'secret' && (
        <SecretSheet apiKey={open.key} address={address} isNew={open.isNew} onClose={closeAndLoad} />
      )}
    </>
  )
}
