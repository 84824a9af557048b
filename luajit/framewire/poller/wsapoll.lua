--- Windows WSAPoll: poll by another name, so the code is poll's. Not tested.

return require "framewire.poller.poll"
