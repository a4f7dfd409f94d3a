/** @jsxImportSource preact */
// Says that something was changed and offers the way back, for ten seconds, or as long as somebody is at it. What cannot
// be undone is never offered here.

import { type ComponentChildren, createContext } from 'preact'
import { useCallback, useContext, useEffect, useState } from 'preact/hooks'
import { Refusal } from './call-api.ts'

export interface Undoable {
  /** `Models of web changed.` */
  readonly text: string
  /** The call that makes it as it was. */
  undo(): Promise<unknown>
  /** The page has to show it as it was. */
  onUndone(): void
}

const ToastContext = createContext<(change: Undoable) => void>(() => {})

export function useToast(): (change: Undoable) => void {
  return useContext(ToastContext)
}

const offeredMs = 10_000

type Said = { readonly text: string; readonly change?: Undoable }

export function ToastProvider({ children }: { readonly children: ComponentChildren }) {
  const [said, setSaid] = useState<Said | undefined>(undefined)
  const [isHeld, setHeld] = useState(false)
  const offer = useCallback((change: Undoable) => setSaid({ text: change.text, change }), [])
  useEffect(() => {
    if (!said || isHeld) return
    const timer = setTimeout(() => setSaid(undefined), offeredMs)
    return () => clearTimeout(timer)
  }, [said, isHeld])
  const undo = async ({ undo: call, onUndone }: Undoable) => {
    setSaid({ text: 'Undoing …' })
    setHeld(false)
    const answer = await call()
    if (answer instanceof Refusal) return setSaid({ text: `It could not be undone: ${answer.message}` })
    setSaid({ text: 'Undone: it is as it was before.' })
    onUndone()
  }
  const change = said?.change
  return (
    <ToastContext.Provider value={offer}>
      {children}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it is only kept open for who points at it or is inside */}
      <div
        class="toast"
        onMouseEnter={() => setHeld(true)}
        onMouseLeave={() => setHeld(false)}
        onFocusIn={() => setHeld(true)}
        onFocusOut={() => setHeld(false)}
      >
        {/* Always there, so that what comes into it is read out. */}
        <p role="status">{said?.text}</p>
        {change && (
          <button type="button" class="button small" data-undo onClick={() => void undo(change)}>
            Undo
          </button>
        )}
        {said && (
          <button type="button" class="button quiet small" onClick={() => setSaid(undefined)}>
            Close
          </button>
        )}
      </div>
    </ToastContext.Provider>
  )
}
