// That a session ended under an open page, told across the reload that leads to the door: whoever stands there then should
// know why. It stays in this tab, and is told once.

const place = 'tollgate-session-ended'

export function noteEndedSession(): void {
  sessionStorage.setItem(place, 'yes')
}

/** Whether it did. */
export function takeEndedSession(): boolean {
  const isNoted = sessionStorage.getItem(place) !== null
  sessionStorage.removeItem(place)
  return isNoted
}
